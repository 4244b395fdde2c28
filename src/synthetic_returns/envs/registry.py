"""Every task by name, with what is known about it.

Tasks are loaded when they are asked for, so that listing the names, or registering them with
Gymnasium, does not import JAX.
"""

import dataclasses
import difflib
import importlib
import math
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["ATARI_TASKS", "TASKS", "Task", "find_task", "make", "register_with_gymnasium"]

UNKNOWN = math.nan  # a return that nobody measured
_GYMNASIUM = "synthetic_returns.envs.gymnasium_adapter"


@dataclasses.dataclass(frozen=True)
class Task:
    """What the registry knows about a task.

    Attributes:
      name: the name on the command line and in the documentation.
      description: one line.
      entry_point: ``module:class`` of the environment.
      random_return: mean return of a uniformly random policy.
      optimal_return: mean return of the scripted policy; NaN where there is none.
      events: what each event of a step means.
      defaults: parameters in which the task differs from the defaults of its class.
    """

    name: str
    description: str
    entry_point: str
    random_return: float
    optimal_return: float
    events: Mapping[str, str]
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def gymnasium_id(self) -> str:
        """The id of the task in Gymnasium, such as ``synthetic_returns/CatchDelayed-v0``."""
        return f"synthetic_returns/{self.name.title().replace('-', '')}-v0"

    def parameters(self) -> dict[str, Any]:
        """The task's parameters and their defaults."""
        fields = dataclasses.fields(self._environment())
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
                    f"The task {self.name} has no parameter {name!r}{_suggest(name, allowed)} "
                    f"Its parameters are: {', '.join(allowed)}."
                )
        return self._environment()(**{**self.defaults, **parameters})

    def _environment(self) -> Any:
        module, _, name = self.entry_point.partition(":")
        return getattr(importlib.import_module(module), name)


def find_task(name: str) -> Task:
    """The task of this name; also ``gym:ID`` for any Gymnasium environment, ``ale:Game`` for Atari.

    Raises:
      ValueError: no task has this name.
    """
    known = {**TASKS, **ATARI_TASKS}
    if name in known:
        return known[name]
    kind, _, which = name.partition(":")
    if kind == "gym" and which:
        return _gymnasium_task(name, which)
    if kind == "ale" and which:
        return _atari_task(name, which)
    raise ValueError(
        f"There is no task {name!r}{_suggest(name, known)} The tasks are: {', '.join(known)}; "
        "gym:ID is any Gymnasium environment and ale:Game any Atari game."
    )


def _gymnasium_task(name: str, env_id: str) -> Task:
    entry_point = "synthetic_returns.envs.gymnasium_task:GymnasiumTask"
    return _unmeasured(name, f"the Gymnasium environment {env_id}", entry_point, env_id=env_id)


def _atari_task(name: str, game: str) -> Task:
    """``ale:MsPacman`` is the ROM ms_pacman."""
    rom = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", game).lower()
    return _unmeasured(
        name, f"the Atari game {game}", "synthetic_returns.envs.atari:Atari", game=rom
    )


def _unmeasured(name: str, description: str, entry_point: str, **defaults: str) -> Task:
    """A task of which nothing is known but what it is."""
    return Task(
        name=name,
        description=description,
        entry_point=entry_point,
        random_return=UNKNOWN,
        optimal_return=UNKNOWN,
        events={},
        defaults=defaults,
    )


def make(name: str, **parameters: Any) -> Any:
    """Builds the environment of a task: ``make("catch-delayed", runs=40)``."""
    return find_task(name).make(**parameters)


def register_with_gymnasium() -> None:
    """Makes every task available to ``gymnasium.make`` and ``gymnasium.make_vec``."""
    import gymnasium

    for task in TASKS.values():
        if task.gymnasium_id not in gymnasium.registry:
            gymnasium.register(
                id=task.gymnasium_id,
                entry_point=f"{_GYMNASIUM}:GymnasiumEnv",
                vector_entry_point=f"{_GYMNASIUM}:GymnasiumVectorEnv",
                kwargs={"task": task.name},
            )


def _suggest(name: str, known: Mapping[str, Any]) -> str:
    matches = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {matches[0]!r}?" if matches else "."


_CATCH_EVENTS = {
    "success": "share of the balls caught",
    "catch": "a ball was caught",
    "miss": "a ball was missed",
}
_KEY_TO_DOOR_EVENTS = {
    "success": "the door was opened",
    "key": "the key was taken",
    "apple": "an apple was taken",
    "door": "the door was opened",
}

TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (
        Task(
            name="chain",
            description="visit a trigger state; it pays after an infinite delay",
            entry_point="synthetic_returns.envs.chain:Chain",
            random_return=0.0078,
            optimal_return=1.0,
            events={"success": "the outcome paid", "trigger": "the trigger was visited"},
        ),
        Task(
            name="catch",
            description="catch falling balls, each pays at once",
            entry_point="synthetic_returns.envs.catch:Catch",
            random_return=2.857,
            optimal_return=20.0,
            events=_CATCH_EVENTS,
        ),
        Task(
            name="catch-delayed",
            description="catch falling balls, all pay at the end",
            entry_point="synthetic_returns.envs.catch:Catch",
            random_return=2.857,
            optimal_return=20.0,
            events=_CATCH_EVENTS,
            defaults={"delayed": True},
        ),
        Task(
            name="key-to-door",
            description="take a key, collect apples, then open a door that needs the key",
            entry_point="synthetic_returns.envs.key_to_door:KeyToDoor",
            random_return=5.68,
            optimal_return=27.7,
            events=_KEY_TO_DOOR_EVENTS,
        ),
        Task(
            name="key-to-door-no-reward",
            description="the door pays nothing, but every step in front of it costs 1",
            entry_point="synthetic_returns.envs.key_to_door:KeyToDoor",
            random_return=-6.99,
            optimal_return=10.6,
            events=_KEY_TO_DOOR_EVENTS,
            defaults={"door_reward": 0.0, "door_step_reward": -1.0, "distractor_steps": 30},
        ),
        Task(
            name="key-to-door-two-keys",
            description="the door costs 1 with the yellow key, 2 with the red one, 5 if closed",
            entry_point="synthetic_returns.envs.key_to_door:KeyToDoor",
            random_return=0.70,
            optimal_return=21.7,
            events={
                "success": "the door was opened with the yellow key",
                "yellow_key": "the yellow key was taken",
                "red_key": "the red key was taken",
                "apple": "an apple was taken",
                "door": "the door was opened",
            },
            defaults={"door_reward": -1.0, "red_key_reward": -2.0, "closed_reward": -5.0},
        ),
        Task(
            name="key-to-door-chained",
            description="each door gives the key to the next, only the last one pays",
            entry_point="synthetic_returns.envs.key_to_door_chained:KeyToDoorChained",
            random_return=5.77,
            optimal_return=28.1,
            events={
                "success": "the last door was opened",
                "key_1": "the key of the first room was taken",
                "key_2": "the key behind the first door was taken; key_3 and key_4 likewise",
                "apple": "an apple was taken",
                "door": "the last door was opened",
            },
        ),
        Task(
            name="umbrella",
            description="one decision, random rewards and observations, then its consequence",
            entry_point="synthetic_returns.envs.umbrella:Umbrella",
            random_return=0.0,
            optimal_return=1.0,
            events={"success": "the decision was right", "umbrella": "the umbrella was taken"},
        ),
    )
}

# They need the extra [atari].
ATARI_TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (
        Task(
            name="pong",
            description="Atari: the first to 21 points wins",
            entry_point="synthetic_returns.envs.pong:Pong",
            random_return=-20.7,
            optimal_return=21.0,
            events={
                "success": "the game was won",
                "point": "a point was won",
                "point_lost": "a point was lost",
            },
        ),
        Task(
            name="skiing",
            description="Atari: pass 20 gates; those missed are paid at the end",
            entry_point="synthetic_returns.envs.skiing:Skiing",
            random_return=-17_098.1,
            optimal_return=UNKNOWN,
            events={
                "success": "share of the gates passed",
                "gate": "a gate was passed",
                "gates_missed": "gates missed, counted at the end",
                "seconds": "the time of the race, counted at the end",
            },
        ),
    )
}
