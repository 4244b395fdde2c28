"""Nothing from outside becomes markup, and no file but a page of ours is replaced."""

import json
import re

import numpy as np
import pytest

from synthetic_returns.viewer.markup import tag
from synthetic_returns.viewer.page import embed, make_page, write_page

NASTY = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>\"'&\u2028"


def test_embedded_data_survives_and_cannot_leave_its_element():
    data = {NASTY: [NASTY, float("nan"), np.float32(0.1), np.arange(2)]}
    written = embed(data)
    assert not re.search("[<>&\u2028]", written)
    (key, values), *_ = json.loads(written).items()
    assert key == NASTY
    assert values == [NASTY, None, 0.1, [0, 1]]


def test_elements_escape_text_and_attributes_but_not_elements():
    made = tag(
        "p", NASTY, tag("b", "bold"), None, [1, "<"], title=NASTY, class_="x", aria_label="y"
    )
    assert made.count("<") == 4  # p, b and their ends
    assert "<b>bold</b>1&lt;</p>" in made
    assert 'class="x" aria-label="y"' in made
    assert '"' not in re.sub(r'="[^"]*"', "", made.split(">")[0])


def test_a_title_cannot_break_out():
    page = make_page(NASTY, "", styles=["viewer/theme.css"])
    assert "<script>alert" not in page
    assert "default-src 'none'" in page


def test_other_files_are_not_replaced(tmp_path):
    path = tmp_path / "thesis.html"
    path.write_text("my thesis")
    with pytest.raises(FileExistsError, match="was not made by this command"):
        write_page(path, make_page("t", "", styles=[]))
    assert path.read_text() == "my thesis"
    path.unlink()
    for title in ("one", "two"):
        write_page(path, make_page(title, "", styles=[]))
    assert "<title>two</title>" in path.read_text()
