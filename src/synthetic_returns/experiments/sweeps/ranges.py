"""What a sweep draws a setting from: a range, or a list of choices."""

import dataclasses
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from synthetic_returns.config import CHOICES, Config
from synthetic_returns.renamed import RENAMED
from synthetic_returns.utils.files import RunError
from synthetic_returns.utils.reading import read_text
from synthetic_returns.utils.settings import dotted
from synthetic_returns.utils.suggestions import unknown

__all__ = ["Choices", "Range", "Space", "parse_space", "read_space", "settings_of", "to_flags"]

GRAMMAR = "log:LOW:HIGH, uniform:LOW:HIGH or choice:A,B,..."


@dataclasses.dataclass(frozen=True)
class Range:
    """Numbers between two, both included, evenly spread or evenly in their logarithm."""

    low: float
    high: float
    log: bool = True
    whole: bool = False

    def __str__(self) -> str:
        return f"{'log' if self.log else 'uniform'}:{self.low:g}:{self.high:g}"

    def extremes(self) -> tuple[str, str]:
        """The ends, as they are written on the command line."""
        return self.text(self.low), self.text(self.high)

    def text(self, value: Any) -> str:
        """A drawn value, as it is written on the command line."""
        return str(int(value)) if self.whole else repr(float(value))


@dataclasses.dataclass(frozen=True)
class Choices:
    """Some values, each as likely as the others; as they are written on the command line."""

    values: tuple[str, ...]

    def __str__(self) -> str:
        return f"choice:{','.join(self.values)}"

    def extremes(self) -> tuple[str, str]:
        """The first and the last."""
        return self.values[0], self.values[-1]

    def text(self, value: Any) -> str:
        """A drawn value: one of them."""
        return str(value)


LARGEST = 1e18  # what a range may hold; whole numbers are int64
Space = dict[str, Range | Choices]  # by the name of the setting


def parse_space(texts: Iterable[str], config: Config) -> Space:
    """Reads ``NAME=log:LOW:HIGH`` and the like.

    Args:
      texts: one for each setting.
      config: where the settings are found, with the types of their values.
    """
    space: Space = {}
    for text in texts:
        name, equals, drawn = text.partition("=")
        if not equals:
            raise ValueError(f"--sweep {text!r} names no range; write NAME={GRAMMAR}.")
        name = name.strip().lstrip("-").replace("-", "_")
        settings = settings_of(config)
        if name not in settings:
            raise ValueError(_unknown(name, settings))
        space[name] = _parse(name, drawn.strip(), settings[name])
    return space


def read_space(path: Path) -> list[str]:
    """The lines of a TOML file as ``parse_space`` takes them; a table's name is a prefix."""
    text = read_text(path, f"write lines like {EXAMPLE}")
    try:
        document = tomllib.loads(text.replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is not TOML ({error}); write lines like {EXAMPLE}.") from error
    return _flat(document, path)


EXAMPLE = 'optimizer.learning_rate = "log:1e-5:4e-4"'


def settings_of(config: Config) -> dict[str, Any]:
    """Every setting that can be swept, by its dotted name, with its value.

    An engine, a credit method and an optimiser can be drawn, too: by name.
    """
    settings = dotted(config)
    for name in ("task_name", "preset", "seed"):
        del settings[name]
    return settings | {name: getattr(config, name).name for name in CHOICES}


def to_flags(values: Mapping[str, str], config: Config) -> list[str]:
    """Values as flags of ``synthetic-returns train``."""
    settings = settings_of(config)
    flags: list[str] = []
    for name, value in values.items():
        *part, last = name.replace("_", "-").split(".")
        prefix = "".join(f"{p}." for p in part)
        if isinstance(settings[name], bool):
            flags.append(f"--{prefix}{'' if value == 'true' else 'no-'}{last}")
        else:
            flags += [f"--{prefix}{last}", *value.split()]
    return flags


def _unknown(name: str, settings: Mapping[str, Any]) -> str:
    if name in RENAMED:
        return f"the setting {name!r} of synthetic-returns 0.1 is now called {RENAMED[name]!r}."
    return unknown("setting", name, settings)


def _parse(name: str, text: str, value: Any) -> Range | Choices:
    kind, _, rest = text.partition(":")
    if kind == "choice":
        choices = tuple(part.strip() for part in rest.split(",") if part.strip())
        if len(choices) < 2:
            raise ValueError(
                f"{name} has the choice {rest!r}; give at least two values with commas between "
                "them, or set the flag itself."
            )
        if isinstance(value, bool) and set(choices) != {"true", "false"}:
            raise ValueError(f"{name} is a switch; sweep it with {name}=choice:true,false.")
        return Choices(choices)
    if kind not in ("log", "uniform"):
        raise ValueError(f"{name} has the range {text!r}; write {GRAMMAR}.")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(
            f"{name} is {value!r}, which is not a number; sweep it with {name}=choice:A,B,..."
        )
    return _parse_range(name, rest, log=kind == "log", whole=isinstance(value, int))


def _parse_range(name: str, text: str, *, log: bool, whole: bool) -> Range:
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        raise ValueError(
            f"{name} has the range {text!r}; write two numbers with a colon between them, such as "
            "1e-5:4e-4."
        ) from None
    if not low < high or (log and low <= 0) or max(-low, high) > LARGEST:
        rule = "0 < low < high" if log else "low < high"
        rule = rule if high <= LARGEST else f"numbers up to {LARGEST:g}"
        raise ValueError(f"{name} has the range {text!r}; it must be LOW:HIGH with {rule}.")
    if whole and not (low.is_integer() and high.is_integer()):
        raise ValueError(f"{name} has the range {text!r}; it is a whole number: so are its ends.")
    return Range(low, high, log, whole)


def _flat(table: Mapping[str, Any], path: Path, prefix: Sequence[str] = ()) -> list[str]:
    lines: list[str] = []
    for name, value in table.items():
        if isinstance(value, dict):
            lines += _flat(value, path, (*prefix, name))
        elif isinstance(value, str):
            lines.append(f"{'.'.join((*prefix, name))}={value}")
        else:
            raise RunError(f"{path} sets {name} to {value!r:.50}; write a text like {EXAMPLE}.")
    return lines
