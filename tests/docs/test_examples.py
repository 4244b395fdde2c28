"""Every public name is used in code that the tests run, and is in the reference."""

import re
from pathlib import Path

import pytest

import synthetic_returns

ROOT = Path(__file__).parent.parent.parent
FENCE = re.compile(r"^```python\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = "\n".join(block for page in PAGES for block in FENCE.findall(page.read_text()))


@pytest.mark.parametrize("name", synthetic_returns.__all__)
def test_a_public_name_has_an_example(name):
    assert re.search(rf"\b{name}\b", EXAMPLES), f"no code block of the docs uses {name}"


@pytest.mark.parametrize("name", synthetic_returns.__all__)
def test_a_public_name_is_in_the_reference_and_documented(name):
    assert f".{name}\n" in (ROOT / "docs" / "api.md").read_text() + "\n"
    try:
        found = getattr(synthetic_returns, name)
    except ImportError as error:
        pytest.skip(str(error))  # of an extra
    assert (found.__doc__ or "").strip()
