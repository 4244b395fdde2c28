"""The engines, each with its settings."""

import dataclasses
from typing import ClassVar

from synthetic_returns.utils.checks import check_positive
from synthetic_returns.utils.meanings import NoMeaning
from synthetic_returns.utils.suggestions import unknown

__all__ = [
    "ENGINES",
    "AnyEngine",
    "ClusterSettings",
    "FusedSettings",
    "LocalSettings",
    "find_engine",
]


@dataclasses.dataclass(frozen=True)
class EngineSettings:
    """What all engines have in common: the batch of an update, and where it is computed."""

    name: ClassVar[str]

    num_envs: int = 32
    """Environments stepped together; also the batch size of an update."""
    unroll_length: int = 20
    """Steps of each environment between two updates."""
    devices: int = 1
    """Devices to spread the environments over; on CPU a device is a core. 0 uses as many as
    divide num_envs evenly."""
    accumulate: int = 1
    """Split the batch into this many parts and add up their gradients: the same update with
    less memory."""

    def __post_init__(self) -> None:
        for name in ("num_envs", "unroll_length", "accumulate"):
            check_positive(name, getattr(self, name))
        if self.devices < 0:
            raise ValueError(
                f"devices is {self.devices}; use 0 for as many as divide num_envs evenly, or how "
                "many."
            )
        if self.accumulate > 1 and self.num_envs % (self.accumulate * max(1, self.devices)):
            raise ValueError(
                f"num_envs is {self.num_envs}; it must be a multiple of accumulate times devices, "
                f"{self.accumulate} x {max(1, self.devices)}."
            )

    @property
    def steps_per_update(self) -> int:
        """Environment steps between two updates, over all environments."""
        return self.num_envs * self.unroll_length


@dataclasses.dataclass(frozen=True)
class FusedSettings(EngineSettings):
    """Environments written in JAX, inside the compiled unroll."""

    name: ClassVar[str] = "fused"

    updates_per_call: int = 0
    """The most unrolls and updates in one compiled call. Credit methods that learn between updates
    need 1. So do overlapping convolutions on CPU, which are slow inside a loop. 0 chooses 1 in
    these cases, and otherwise all updates until the next report."""
    stagger: bool = True
    """Start the environments at evenly spaced points of their first episode."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.updates_per_call < 0:
            raise ValueError(
                f"updates_per_call is {self.updates_per_call}; use 0 for as many as suit, or how "
                "many at most."
            )


@dataclasses.dataclass(frozen=True)
class LocalSettings(EngineSettings):
    """Any task, Gymnasium and Atari included; actor threads step environments on the host."""

    name: ClassVar[str] = "local"

    actors: int = 1
    """Actor threads, each with its own environments. 0 acts and learns in turns, which is
    repeatable."""
    queue_size: int = 1
    """Largest number of unrolls that wait for the learner; a longer queue lets actors run
    further ahead."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("queue_size", self.queue_size)
        if self.actors < 0:
            raise ValueError(
                f"actors is {self.actors}; use 0 to act and learn in turns, or how many threads."
            )

    def meaningless(self) -> dict[str, NoMeaning]:
        """The queue between actors and learner, if there is none."""
        if self.actors:
            return {}
        return {"queue_size": NoMeaning("actors", "which acts and learns in turns", "actors 1")}


@dataclasses.dataclass(frozen=True)
class ClusterSettings(EngineSettings):
    """Any task; actors in separate processes, on one machine or many."""

    name: ClassVar[str] = "cluster"

    actors: int = 1
    """Actor processes, each with its own environments."""
    actor_envs: int = 0
    """Environments of each actor. An update combines the unrolls of several actors until they
    have num_envs environments. 0 chooses a number such that an update needs at most half of
    the actors, and never waits for a slow one."""
    max_lag: int = 20
    """Largest number of updates between the start of an unroll and learning from it. Actors
    start no more unrolls than these updates can use; older unrolls are discarded."""
    address: str | None = None
    """Address of the Ray cluster, or auto for the one that this machine belongs to. By default,
    a new cluster is started on this machine."""
    stagger: bool = True
    """Start the environments at evenly spaced points of their first episode, if they are
    written in JAX."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("max_lag", self.max_lag)
        if self.actor_envs < 0 or self.num_envs % self.envs_per_actor:
            raise ValueError(
                f"actor_envs is {self.actor_envs}; it must divide num_envs, {self.num_envs}, or be "
                "0 for a number that suits."
            )
        if self.actors < max(1, self.unrolls_per_update):
            raise ValueError(
                f"actors is {self.actors}; an update takes unrolls of {self.unrolls_per_update} "
                f"different actors ({self.envs_per_actor} of {self.num_envs} environments each): "
                "use at least as many, or give each more with actor_envs."
            )

    @property
    def envs_per_actor(self) -> int:
        """Environments of each actor."""
        if self.actor_envs:
            return self.actor_envs
        half = max(1, self.actors // 2)
        return self.num_envs // max(n for n in range(1, half + 1) if self.num_envs % n == 0)

    @property
    def unrolls_per_update(self) -> int:
        """Unrolls of different actors that make up a batch."""
        return self.num_envs // self.envs_per_actor


AnyEngine = FusedSettings | LocalSettings | ClusterSettings
ENGINES: dict[str, type[AnyEngine]] = {
    kind.name: kind for kind in (FusedSettings, LocalSettings, ClusterSettings)
}


def find_engine(name: str) -> type[AnyEngine]:
    """The engine of this name."""
    if name not in ENGINES:
        raise ValueError(unknown("engine", name, ENGINES))
    return ENGINES[name]
