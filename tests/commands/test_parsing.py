"""Help that fits the terminal and reads as prose; what it says of settings without a default."""

import contextlib
import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
import tyro

from synthetic_returns.cli import COMMANDS, main
from synthetic_returns.commands.parsing import parse, parse_known

PAGES = (
    *([name] for name in COMMANDS),
    *(["train", task] for task in ("chain", "key-to-door")),
    *([command, "chain"] for command in ("compare", "sweep")),
    ["bench", "growth"],
    ["tasks", "show"],
    ["sweep", "show"],
)


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Does a thing with a file that has a long name, and says so in a line that is far too long.

    There is more to say.
    """

    file: tyro.conf.Positional[Path]
    """The file."""
    out: Path | None = None
    """The first line of the help of a flag, which goes on
    in a second line of the source."""
    some: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """How many."""
    limit: int | None = 3
    """At most."""
    names: tuple[str, ...] = ()
    """Names."""


def page(capsys, *arguments):
    with contextlib.suppress(SystemExit):
        main(arguments)
    return capsys.readouterr().out


@pytest.mark.parametrize("words", PAGES, ids=" ".join)
def test_help_fits_a_terminal(words, terminal, capsys):
    text = page(capsys, *words, "--help")
    assert max(map(len, text.splitlines())) <= 80
    assert "default: None" not in text
    assert "default: )" not in text
    assert "``" not in text


def test_help_is_one_text_whatever_the_lines_of_the_source(terminal, capsys):
    with pytest.raises(SystemExit):
        parse(Arguments, ["--help"], "program " + "word " * 20)
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert lines[0].startswith("usage: program word")
    assert lines[1].startswith("  word")
    shown = " ".join(text.replace("│", " ").split())
    assert "in a line that is far too long. There is more to say." in shown
    assert "\n\nThere is more to say.\n" in text
    assert "--out PATH The first line of the help of a flag, which goes on in a second" in shown
    assert "--some N How many. --limit {None}|INT At most. (default: 3)" in shown
    assert "--names [STR [STR ...]] Names." in shown
    assert "FILE The file. (required)" in shown
    assert "(default: None)" not in shown


def test_what_is_parsed_is_what_tyro_parses():
    line = ["data", "--out", "x", "--limit", "None", "--names", "a", "b"]
    parsed = parse(Arguments, line, "program")
    assert parsed == Arguments(Path("data"), Path("x"), None, None, ("a", "b"))
    parsed, others = parse_known(Arguments, ["data", "--other", "1", "--some", "2"], "program")
    assert parsed == Arguments(Path("data"), some=2)
    assert others == ["--other", "1"]
    default = Arguments(Path("y"), names=("c",))
    assert parse(Arguments, ["--limit", "4"], "program", default=default) == dataclasses.replace(
        default, limit=4
    )


@pytest.mark.parametrize("words", [["train", "chain", "--help"], ["tasks"]])
def test_a_reader_may_go_before_the_end(words):
    """As in ``synthetic-returns tasks | head -1``."""
    with subprocess.Popen(
        [sys.executable, "-m", "synthetic_returns", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.close()
        assert program.stderr.read() == ""
        assert program.wait() == 1
