"""Command lines by tyro, with help that fits the terminal."""

import contextlib
import dataclasses
import io
import re
import shutil
import sys
import textwrap
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, TextIO, TypeVar, get_args

import tyro
from tyro.constructors import ConstructorRegistry, StructConstructorSpec, StructTypeInfo

__all__ = ["parse", "parse_known"]

Arguments = TypeVar("Arguments")
COLOURS = re.compile(r"\x1b\[[\d;]*m")


MARKERS = (tyro.conf.PositionalMetavarFromFieldName, tyro.conf.HelptextFromCommentsOff)


def parse(
    kind: type[Arguments],
    arguments: Sequence[str],
    prog: str,
    *,
    config: Sequence[Any] = (),
    **options: Any,
) -> Arguments:
    """Parses a command line; ends the program after ``--help``, or if the line is wrong.

    Args:
      kind: the dataclass that the flags fill.
      arguments: the command line.
      prog: the command that takes it, for the usage line.
      config: markers of ``tyro.conf``.
      **options: further ones of ``tyro.cli``.
    """
    options |= {"registry": _TidyHelp(), "config": (*MARKERS, *config)}
    with _fitted_help():
        return tyro.cli(kind, args=list(arguments), prog=prog, **options)


def parse_known(
    kind: type[Arguments], arguments: Sequence[str], prog: str
) -> tuple[Arguments, list[str]]:
    """Parses a command line that may hold other flags; returns these, too."""
    options: Any = {"return_unknown_args": True}
    parsed: Any = parse(kind, arguments, prog, **options)
    return parsed


class _TidyHelp(ConstructorRegistry):
    """Help of settings without the line breaks of the source, and without ``(default: None)``."""

    def __init__(self) -> None:
        super().__init__()
        self.struct_rule(self._tidy)
        self._within: StructTypeInfo | None = None

    def _tidy(self, info: StructTypeInfo) -> StructConstructorSpec | None:
        if info is self._within or not dataclasses.is_dataclass(info.type):
            return None
        self._within = info  # now the other rules have their turn
        found = ConstructorRegistry.get_struct_spec(info)
        if not isinstance(found, StructConstructorSpec):
            return None
        fields = [
            dataclasses.replace(
                field, type=_unset(field.type, field.default), helptext=_joined(field.helptext)
            )
            for field in found.fields
        ]
        return dataclasses.replace(found, fields=tuple(fields))


def _unset(kind: Any, default: object) -> Any:
    """A type whose help does not speak of a default that stands for none."""
    if default not in (None, ()):
        return kind
    inner = [x for x in get_args(kind) if x is not types.NoneType]
    simple = default is None and len(inner) == 1 and isinstance(inner[0], type)
    metavar = inner[0].__name__.upper() if simple else None
    return Annotated[kind, tyro.conf.arg(metavar=metavar, help_behavior_hint="")]


def _joined(text: str | Callable[[], str | None] | None) -> Callable[[], str | None]:
    """One line for each paragraph; tyro reads the text when somebody asks for it."""

    def read() -> str | None:
        found = text if text is None or isinstance(text, str) else text()
        return found and "\n\n".join(" ".join(part.split()) for part in found.split("\n\n"))

    return read


class _Page(io.StringIO):
    """Output that is kept for now; it is what it would be if it went to ``target`` at once."""

    def __init__(self, target: TextIO) -> None:
        super().__init__()
        self._target = target

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._target.encoding

    def isatty(self) -> bool:
        return self._target.isatty()


@contextlib.contextmanager
def _fitted_help() -> Iterator[None]:
    """Wraps what tyro prints beside its boxes: the usage and the description."""
    page = _Page(sys.stdout)
    try:
        with contextlib.redirect_stdout(page):
            yield
    finally:
        width = shutil.get_terminal_size().columns
        for line in page.getvalue().splitlines():
            print(_fitted(line, width))


def _fitted(line: str, width: int) -> str:
    """The line, in as many lines as it takes, then without colours."""
    plain = COLOURS.sub("", line)
    if len(plain) <= width:
        return line
    indent = "  " if plain.startswith("usage:") else ""
    return textwrap.fill(
        plain, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
