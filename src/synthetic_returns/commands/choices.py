"""Flags of ``train`` that choose an agent, engine, credit method or optimiser; their settings."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from synthetic_returns.agents.optimizer_settings import OPTIMIZERS
from synthetic_returns.agents.settings import AGENTS
from synthetic_returns.config import CHOICES, Config
from synthetic_returns.credit.method import CreditMethod, Need
from synthetic_returns.credit.registry import method_names
from synthetic_returns.engines.settings import ENGINES
from synthetic_returns.presets import with_agent
from synthetic_returns.renamed import RENAMED, RENAMED_METHODS
from synthetic_returns.utils.settings import setting_names

__all__ = ["CHOICE_FLAGS", "check_flags", "choose", "spell_out"]

CHOICE_FLAGS = tuple(f"--{group}" for group in CHOICES)

_WORDS = {
    "agent": "agent",
    "engine": "engine",
    "credit": "credit method",
    "optimizer": "optimiser",
}
_KNOWN: dict[str, Callable[[], Sequence[str]]] = {
    "agent": lambda: list(AGENTS),
    "engine": lambda: list(ENGINES),
    "credit": method_names,
    "optimizer": lambda: list(OPTIMIZERS),
}


def spell_out(arguments: Sequence[str]) -> list[str]:
    """Writes the short name ``--no-sr`` as what it stands for; refuses flags of 0.1."""
    spelled: list[str] = []
    for argument in arguments:
        spelled += ["--credit", "none"] if argument == "--no-sr" else [argument]
    for flag, name in _flags(spelled):
        for old, no in ((name, ""), (_positive(name), "no-")):
            if old in RENAMED:
                *group, last = RENAMED[old].replace("_", "-").split(".")
                new = "--credit NAME" if old == "sr" else f"--{'.'.join([*group, no + last])}"
                raise ValueError(f"{flag} is a flag of synthetic-returns 0.1; it is now {new}.")
    return spelled


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
    if getattr(chosen.get("credit"), "conserves", False):
        # What a preset leaves out of the reward, because other methods have paid it, counts again.
        chosen |= {"reward.beta": 1.0, "reward.last_reward": 1.0}
    return config.changed(chosen)


def check_flags(config: Config, arguments: Sequence[str]) -> None:
    """Refuses flags that mean nothing with the agent, engine, ... that were chosen."""
    for flag, name in _flags(arguments):
        group, _, setting = name.partition(".")
        if group in CHOICES:
            _check_setting(config, flag, group, setting)
        elif group == "view" and not isinstance(config.credit, CreditMethod):
            methods = [m for m in method_names() if issubclass(CHOICES["credit"](m), CreditMethod)]
            raise ValueError(_no_meaning(config, flag, "credit", methods))
        elif group == "reward" and setting != "scale" and not config.has_credit:
            methods = [method for method in method_names() if method != config.credit.name]
            # The first one is recommended, and the oracle is for comparisons.
            methods.sort(key=lambda m: Need.CONTRIBUTIONS in CHOICES["credit"](m).needs)
            raise ValueError(_no_meaning(config, flag, "credit", methods))


def _check_setting(config: Config, flag: str, group: str, setting: str) -> None:
    def has(kind: Any) -> bool:
        return bool({setting, _positive(setting)} & set(setting_names(kind)))

    if not setting or has(type(getattr(config, group))):
        return
    homes = [name for name in _KNOWN[group]() if has(CHOICES[group](name))]
    if homes:  # else it is unknown everywhere, and the parser says so
        raise ValueError(_no_meaning(config, flag, group, homes))


def _no_meaning(config: Config, flag: str, group: str, homes: Sequence[str]) -> str:
    return (
        f"{flag} has no meaning with the {_WORDS[group]} {getattr(config, group).name!r}; it "
        f"belongs to {' and '.join(map(repr, homes))}: leave it out, or use --{group} {homes[0]}."
    )


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


def _flags(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every flag as it was written, and the dotted name of its setting."""
    for argument in arguments:
        if argument.startswith("--"):
            flag = argument.partition("=")[0]
            yield flag, flag.removeprefix("--").replace("-", "_")


def _positive(name: str) -> str:
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
