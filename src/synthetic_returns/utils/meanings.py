"""Settings that mean nothing with the values of others: their own group says which, and why."""

import dataclasses
from typing import Any, NamedTuple, Protocol, runtime_checkable

__all__ = ["NoMeaning", "meaningless", "switched_off"]


class NoMeaning(NamedTuple):
    """Why a setting has no meaning.

    Attributes:
      because: the setting of the same group whose value leaves it without one.
      why: what that value does, as the end of a sentence.
      use: the setting and a value with which there would be a meaning.
    """

    because: str
    why: str
    use: str


@runtime_checkable
class _Judge(Protocol):
    """A group of settings, some of which may have no meaning."""

    def meaningless(self) -> dict[str, NoMeaning]:
        """By the names of settings, or of groups of them, why they have no meaning."""
        ...


def switched_off(settings: Any, switch: str, what: str, on: str) -> dict[str, NoMeaning]:
    """All settings of a group but the one that switches the group on.

    Args:
      settings: the group.
      switch: the name of that one.
      what: the group in words.
      on: a value that switches it on.
    """
    names = [field.name for field in dataclasses.fields(settings) if field.name != switch]
    return dict.fromkeys(names, NoMeaning(switch, f"which switches {what} off", f"{switch} {on}"))


def meaningless(settings: Any, prefix: str = "") -> dict[str, str]:
    """By full name, every setting without a meaning: what it has none with, and what to do.

    Args:
      settings: a dataclass of groups.
      prefix: what the names begin with.
    """
    found: dict[str, str] = {}
    fields = dataclasses.fields(settings)
    judged = settings.meaningless() if isinstance(settings, _Judge) else {}
    for name, (because, why, use) in judged.items():
        value = _text(getattr(settings, because))
        found[f"{prefix}{name}"] = (
            f"{prefix}{because} {value}, {why}: leave it out, or use "
            f"--{prefix}{use.replace('_', '-')}"
        )
    for field in fields:
        group = getattr(settings, field.name)
        if dataclasses.is_dataclass(group):
            found |= meaningless(group, f"{prefix}{field.name}.")
    return found


def _text(value: Any) -> str:
    if value == ():
        return "empty"
    return f"{value:g}" if isinstance(value, float) else str(value)
