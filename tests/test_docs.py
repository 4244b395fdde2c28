"""The Python of the pages about ways of use runs as it stands."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ("wrapper", "sb3", "jax")
BLOCKS = [
    (page, block)
    for page in PAGES
    for block in re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.DOTALL)
]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_begins_with_a_snippet(page):
    title, _, rest = (DOCS / f"{page}.md").read_text().partition("\n\n")
    assert title.startswith("# ")
    assert rest.startswith("```python\n")


@pytest.mark.parametrize(("page", "block"), BLOCKS, ids=[page for page, _ in BLOCKS])
def test_block_runs(page, block, tmp_path, monkeypatch):
    if page == "sb3":
        pytest.importorskip(
            "stable_baselines3", reason="needs the extra: pip install 'synthetic-returns[sb3]'"
        )
        import torch

        torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    exec(compile(block, f"{page}.md", "exec"), {})
