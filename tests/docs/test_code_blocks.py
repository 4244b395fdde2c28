"""Every code block of the README and the documentation: Python is run, commands are parsed."""

import importlib
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import tyro

from synthetic_returns.cli import main
from synthetic_returns.commands.train import configuration
from synthetic_returns.credit import registry
from tests.small import small_config

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
EXTRAS = {"stable_baselines3": "sb3", "torchrl": "torchrl", "ray.rllib": "rllib"}
NOT_CODE = {"", "bibtex", "math", "toml", "yaml"}

BLOCKS = [
    (f"{page.relative_to(ROOT)}:{1 + text[: found.start()].count(chr(10))}", *found.groups())
    for page in PAGES
    for text in [page.read_text()]
    for found in FENCE.finditer(text)
]
# The only changes: training is too long for a test.
LONG = 'preset("catch-delayed", runs=20)'
SHORTER = {
    LONG: f'{LONG} and small_config("episodic")',
    "model.learn(2_000": "model.learn(1_000",  # one rollout
}
# A block that stands on several pages is run once.
PYTHON = [
    (where, code)
    for code, where in {
        code: where for where, language, code in reversed(BLOCKS) if language == "python"
    }.items()
]
COMMANDS = [
    pytest.param(shlex.split(line, comments=True), id=f"{where} {line.split('#')[0].strip()}")
    for where, language, code in BLOCKS
    if language == "console"
    for line in code.splitlines()
    if line.strip()
]


class Parsed(Exception):
    """The command line was understood; what it asks for would come next."""


def test_every_block_is_of_a_kind_that_is_tested():
    for where, language, code in BLOCKS:
        assert language in {"python", "console"} | NOT_CODE, where
        if language in NOT_CODE:
            commands = ("synthetic-returns ", "make ", "pip ", "python ")
            assert not code.startswith(commands), f"{where} is a command without a language"
    assert len(PYTHON) >= 6
    assert all(any(long in code for _, code in PYTHON) for long in SHORTER)
    assert len(COMMANDS) >= 20


@pytest.mark.parametrize("page", ["wrapper", "sb3", "torchrl", "rllib", "jax", "logs", "gymnax"])
def test_a_page_about_a_way_of_use_begins_with_a_snippet(page):
    title, _, rest = (ROOT / "docs" / f"{page}.md").read_text().partition("\n\n")
    assert title.startswith("# ")
    assert rest.startswith("```python\n")


@pytest.mark.parametrize("code", [code for _, code in PYTHON], ids=[where for where, _ in PYTHON])
def test_python_runs_as_it_stands(code, tmp_path, monkeypatch):
    for library, extra in EXTRAS.items():
        if library in code:
            needed = f"needs the extra: pip install 'synthetic-returns[{extra}]'"
            pytest.importorskip(library, reason=needed, exc_type=ImportError)
            importlib.import_module("torch").set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_REGISTERED", {})  # what a block registers is its own
    for long, short in SHORTER.items():
        code = code.replace(long, short)
    exec(compile(code, "block", "exec"), {"small_config": small_config})


@pytest.mark.parametrize("words", COMMANDS)
def test_commands_are_understood(words, monkeypatch, capsys):
    program, *arguments = words
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        assert set(arguments) <= set(targets)
    elif program == "tensorboard":
        assert arguments == ["--logdir", "runs"]
    elif program == "pip":
        found = re.fullmatch(r"synthetic-returns\[(\w+)\]", arguments[-1])
        assert found
        assert arguments[:-1] == ["install", "--constraint", "constraints.txt"]
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        assert found[1] in project["optional-dependencies"]
    else:
        assert program == "synthetic-returns"
        if arguments[0] == "train" and "--resume" not in arguments and "--help" not in arguments:
            configuration(arguments[1:])  # every flag has a meaning beside the others
        understand = tyro.cli

        def parse_and_stop(*positional, **keywords):
            understand(*positional, **keywords)
            raise Parsed

        monkeypatch.setattr(tyro, "cli", parse_and_stop)
        if arguments == ["tasks"]:
            main(arguments)  # it takes nothing, and is quick
        elif "--resume" in arguments:
            # Continues a run, so it is parsed on top of one that exists.
            with pytest.raises(Parsed):
                main(["train", "key-to-door", *arguments[1:]])
        else:
            with pytest.raises(Parsed):
                main(arguments)
