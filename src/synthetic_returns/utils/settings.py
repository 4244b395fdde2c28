"""Settings that are nested dataclasses: their dotted names, changes by name, and plain data."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from synthetic_returns.utils.suggestions import unknown

__all__ = ["changed", "dotted", "fits", "from_plain", "setting_names", "to_plain", "tuples"]


def dotted(settings: Any, prefix: str = "") -> dict[str, Any]:
    """Every single setting by its full name, such as ``agent.torso.sizes``.

    Args:
      settings: a dataclass, or the plain data of one.
      prefix: what the names begin with.
    """
    found: dict[str, Any] = {}
    for name, value in _items(settings):
        if dataclasses.is_dataclass(value) or isinstance(value, Mapping):
            found |= dotted(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def setting_names(kind: Any, prefix: str = "") -> list[str]:
    """The dotted names of the settings of a class."""
    hints = typing.get_type_hints(kind)
    names: list[str] = []
    for field in dataclasses.fields(kind):
        name, hint = f"{prefix}{field.name}", hints[field.name]
        names += setting_names(hint, f"{name}.") if dataclasses.is_dataclass(hint) else [name]
    return names


def changed(settings: Any, changes: Mapping[str, Any], prefix: str = "") -> Any:
    """A copy with other values; a name may be that of a whole group.

    The changes of a group are made at once, so that it is checked only when all are in place.

    Args:
      settings: a dataclass.
      changes: by dotted name.
      prefix: what the names of the settings begin with, for the message.
    """
    own: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        head, dot, rest = name.partition(".")
        if dot:
            inner.setdefault(head, {})[rest] = value
        else:
            own[head] = value
    known = dict(_items(settings))
    for name in (*own, *inner):
        if name not in known:
            names = [*known, *dotted(settings)]
            raise ValueError(unknown("setting", f"{prefix}{name}", [f"{prefix}{n}" for n in names]))
    for name, part in inner.items():
        group = own.get(name, known[name])
        if not dataclasses.is_dataclass(group):
            raise ValueError(
                f"{prefix}{name} is {group!r}, which has no settings of its own; there is no "
                f"{prefix}{name}.{next(iter(part))}."
            )
        own[name] = changed(group, part, f"{prefix}{name}.")
    return dataclasses.replace(settings, **own)


def to_plain(settings: Any) -> dict[str, Any]:
    """Plain data; one of several kinds of settings begins with its name."""
    plain: dict[str, Any] = {}
    if isinstance(name := getattr(type(settings), "name", None), str):
        plain["name"] = name
    for field, value in _items(settings):
        plain[field] = to_plain(value) if dataclasses.is_dataclass(value) else value
    return plain


def from_plain(kind: Any, data: Mapping[str, Any], prefix: str = "") -> Any:
    """The settings that ``to_plain`` was called on, perhaps by way of JSON."""
    data = {name: value for name, value in data.items() if name != "name"}
    hints = typing.get_type_hints(kind)
    known = {field.name for field in dataclasses.fields(kind)}
    for name in data:
        if name not in known:
            raise ValueError(
                f"the configuration has the unknown setting {prefix + name!r}; it was written by "
                "another version of synthetic-returns: use that version."
            )
    found = {
        name: from_plain(hints[name], value, f"{prefix}{name}.")
        if dataclasses.is_dataclass(hints[name]) and isinstance(value, Mapping)
        else tuples(value)
        for name, value in data.items()
    }
    for name, value in found.items():
        if not fits(value, hints[name]):
            raise ValueError(
                f"the configuration sets {prefix}{name} to {value!r:.50}, which is not of its "
                "kind: restore the file, or use the version of synthetic-returns that wrote it."
            )
    return kind(**found)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the kind that an annotation asks for, as far as settings need it."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return fits(value, inner[0])
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        each = inner[:1] * len(value) if inner[1:] == (...,) else inner
        return len(each) == len(value) and all(map(fits, value, each))
    if hint in (int, float):
        whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
        return whole or (hint is float and isinstance(value, float))
    if hint is None:
        return value is None
    return not isinstance(hint, type) or isinstance(value, hint)


def tuples(value: Any) -> Any:
    """JSON knows lists only; settings hold tuples, so that they are hashable."""
    if isinstance(value, Mapping):
        return {name: tuples(x) for name, x in value.items()}
    return tuple(tuples(x) for x in value) if isinstance(value, list) else value


def _items(settings: Any) -> list[tuple[str, Any]]:
    if isinstance(settings, Mapping):
        return list(settings.items())
    return [(field.name, getattr(settings, field.name)) for field in dataclasses.fields(settings)]
