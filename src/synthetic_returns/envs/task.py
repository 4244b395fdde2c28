"""What is known about a task beside its dynamics: the entry that its file adds to the registry."""

import dataclasses
import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["UNKNOWN", "Task", "gymnasium_id", "suggest"]

UNKNOWN = math.nan  # a return that nobody measured


@dataclasses.dataclass(frozen=True)
class Task:
    """A task by name: a class of environments with some of its parameters set.

    Attributes:
      name: the name on the command line and in the documentation.
      description: one line.
      environment: the class, a frozen dataclass: an ``Environment`` or a ``HostTask``.
      random_return: mean return of a uniformly random policy; NaN if it is not known.
      optimal_return: mean return of the scripted policy, or the largest one that is possible; NaN
        if it is not known.
      events: what each event of a step means.
      defaults: parameters in which the task differs from the defaults of its class.
      presets: by the name of a preset, the settings in which it differs for this task, by their
        dotted names: ``{"fast": {"steps": 200_000, "agent.entropy_cost": 0.03}}``. By the name of
        an agent, what that agent changes in turn.
      default_preset: the preset that is meant where none is named.
      preset_notes: by the name of a preset, what everybody has to know who reads a result of it.
      missing_presets: the presets of other tasks that this one does not have, and why.
      unscripted: why the environment has no ``optimal_action``; empty if it has one.
    """

    name: str
    description: str
    environment: type[Any]
    random_return: float = UNKNOWN
    optimal_return: float = UNKNOWN
    events: Mapping[str, str] = dataclasses.field(default_factory=dict)
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    presets: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    default_preset: str = "fast"
    preset_notes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    missing_presets: Mapping[str, str] = dataclasses.field(default_factory=dict)
    unscripted: str = ""

    @property
    def gymnasium_id(self) -> str:
        """The id of the task in Gymnasium, such as ``synthetic_returns/CatchDelayed-v0``."""
        return gymnasium_id(self.name)

    def parameters(self) -> dict[str, Any]:
        """The task's parameters and their defaults."""
        fields = dataclasses.fields(self.environment)
        return {field.name: field.default for field in fields} | dict(self.defaults)

    def make(self, **parameters: Any) -> Any:
        """Builds the environment: an ``Environment`` written in JAX, or a ``HostTask``.

        Raises:
          TypeError: a parameter that the task does not have.
          ValueError: a value that the task refuses.
        """
        allowed = self.parameters()
        for name in parameters:
            if name not in allowed:
                raise TypeError(
                    f"The task {self.name} has no parameter {name!r}{suggest(name, allowed)} "
                    f"Its parameters are: {', '.join(allowed)}."
                )
        return self.environment(**{**self.defaults, **parameters})


def gymnasium_id(name: str) -> str:
    """The id in Gymnasium of the task of this name."""
    return f"synthetic_returns/{name.title().replace('-', '')}-v0"


def suggest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest known one, if any is near."""
    matches = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {matches[0]!r}?" if matches else "."
