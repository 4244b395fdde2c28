"""Flags of ``train`` that choose an agent, engine, credit method or optimiser."""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from synthetic_returns.config import CHOICES, Config
from synthetic_returns.credit.method import Gives
from synthetic_returns.presets import with_agent
from synthetic_returns.renamed import RENAMED, RENAMED_METHODS, RENAMED_PARAMETERS

__all__ = ["CHOICE_FLAGS", "check_parameters", "choose", "named_flags", "positive", "spell_out"]

CHOICE_FLAGS = tuple(f"--{group}" for group in CHOICES)


def spell_out(arguments: Sequence[str]) -> list[str]:
    """Writes the short name ``--no-sr`` as what it stands for; refuses flags of 0.1."""
    spelled: list[str] = []
    for argument in arguments:
        spelled += ["--credit", "none"] if argument == "--no-sr" else [argument]
    for flag, name in named_flags(spelled):
        for old, no in ((name, ""), (positive(name), "no-")):
            if old in RENAMED:
                *group, last = RENAMED[old].replace("_", "-").split(".")
                new = "--credit NAME" if old == "sr" else f"--{'.'.join([*group, no + last])}"
                raise ValueError(f"{flag} is a flag of synthetic-returns 0.1; it is now {new}.")
    return spelled


def check_parameters(config: Config, arguments: Sequence[str]) -> None:
    """Refuses parameters of the task by the names that they had in 0.1."""
    known = {field.name for field in dataclasses.fields(config.task)}
    for flag, name in named_flags(arguments):
        group, _, old = name.partition(".")
        new = RENAMED_PARAMETERS.get(old)
        if group == "task" and old not in known and new in known:
            raise ValueError(
                f"{flag} is a flag of synthetic-returns 0.1; it is now --task."
                f"{new.replace('_', '-')}."
            )


def choose(config: Config, arguments: Sequence[str]) -> Config:
    """The configuration with the agent, engine, ... that the arguments name."""
    config = with_agent(config, _value("--agent", arguments) or config.agent.name)
    chosen: dict[str, Any] = {}
    for group, find in CHOICES.items():
        current = getattr(config, group)
        name = _value(f"--{group}", arguments)
        if name is None or name == current.name:
            continue
        if group == "credit" and name in RENAMED_METHODS:
            raise ValueError(
                f"the credit {name!r} of synthetic-returns 0.1 is now called "
                f"{RENAMED_METHODS[name]!r}."
            )
        chosen[group] = _convert(group, current, find(name))
    credit = chosen.get("credit")
    if credit and (credit.gives is not Gives.REWARD or getattr(credit, "conserves", False)):
        # What a preset leaves out of the reward, because other methods have paid it, counts again.
        chosen |= {"reward.beta": 1.0, "reward.last_reward": 1.0}
    return config.changed(chosen)


def _convert(group: str, current: Any, kind: type[Any]) -> Any:
    """Another kind of settings, with what both kinds have from the current one.

    A number of environments or a step size means the same everywhere. A credit method's own
    settings do not, even if they have one name: it takes over whole parts only, and only those that
    were made for the task, such as an encoder of its images, or a replay that says how many
    episodes can be kept. How often it trains on them is its own.
    """
    names = {field.name for field in dataclasses.fields(kind)} & vars(current).keys()
    shared: dict[str, Any] = {name: getattr(current, name) for name in names}
    if group == "credit":
        usual = type(current)()
        shared = {
            name: value
            for name, value in shared.items()
            if dataclasses.is_dataclass(value) and value != getattr(usual, name)
        }
    if group == "credit" and "replay" in shared:
        shared["replay"] = dataclasses.replace(
            kind().replay, slots=shared["replay"].slots, save=shared["replay"].save
        )
    return kind(**shared)


def named_flags(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every flag as it was written, and the dotted name of its setting."""
    for argument in arguments:
        if argument.startswith("--"):
            flag = argument.partition("=")[0]
            yield flag, flag.removeprefix("--").replace("-", "_")


def positive(name: str) -> str:
    """The name of a switch that is switched off, as in ``agent.no_clock``."""
    *group, last = name.split(".")
    return ".".join([*group, last.removeprefix("no_")])


def _value(flag: str, arguments: Sequence[str]) -> str | None:
    """What follows a flag; the last one counts, as everywhere."""
    found = None
    for argument, value in itertools.pairwise(arguments):
        if argument == flag and not value.startswith("-"):
            found = value
    return found
