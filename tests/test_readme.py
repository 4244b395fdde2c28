"""The README's Python runs as it stands."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


def test_there_are_blocks():
    assert len(BLOCKS) == 3


@pytest.mark.parametrize("block", BLOCKS, ids=["train", "library", "wrapper"])
def test_block_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = 'preset("chain")\nimport dataclasses\n'
    small += "config = dataclasses.replace(config, steps=2_000, eval_episodes=5)"
    code = block.replace('preset("catch-delayed", runs=20)', small)
    exec(compile(code, str(README), "exec"), {})
