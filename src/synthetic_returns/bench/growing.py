"""What can grow, and the work that is timed while it does.

The work grows in proportion: one episode of each environment, or one pass over the memory. So a
library that wastes nothing has an exponent of 1 or less.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import jax

from synthetic_returns.bench.sa import compiled_pass
from synthetic_returns.config import Config
from synthetic_returns.engines.engine import make_engine
from synthetic_returns.engines.settings import LocalSettings
from synthetic_returns.presets import preset

__all__ = ["GROWING", "Growing", "Work"]

Work = Callable[[], None]

ENVS = 32
ROWS = 7  # an update of Catch follows each ball: no episode ends within one
RUNS = 5
SLOTS = 64  # fewer episodes than are played, so that the buffer is full whatever they are like
PASS_STEPS = 20


@dataclasses.dataclass(frozen=True)
class Growing:
    """Something that grows.

    Attributes:
      label: what is counted, for the axis of a figure.
      timed: the work that is timed.
      sizes: that are measured.
      quick_sizes: that are enough to see that it works.
      prepare: makes ready the work at a size, which is everything but the work itself.
    """

    label: str
    timed: str
    sizes: tuple[int, ...]
    quick_sizes: tuple[int, ...]
    prepare: Callable[[int], contextlib.AbstractContextManager[Work]]


@contextlib.contextmanager
def _training(config: Config, updates: int, slots: int = SLOTS) -> Iterator[Work]:
    """Updates with the default credit method, which here learns from the first episode on."""
    config = config.changed({"credit.replay.slots": slots, "credit.replay.warmup": 1})
    with contextlib.closing(make_engine(config, [0])) as engine:

        def work() -> None:
            done = 0
            while done < updates:
                done += engine.step(updates - done)
            engine.report()  # waits for the device

        yield work


def _episode(size: int) -> contextlib.AbstractContextManager[Work]:
    unroll = 20
    config = preset("umbrella", length=size - 1)  # and a step that begins the next one
    return _training(
        config.changed({"engine.num_envs": ENVS, "engine.unroll_length": unroll}),
        updates=-(-size // unroll),
    )


def _catch(updates: int = RUNS, columns: int = 7, slots: int = SLOTS, **changes: Any):
    config = preset("catch-delayed", runs=RUNS, rows=ROWS, columns=columns)
    changes = {"engine.num_envs": ENVS, "engine.unroll_length": ROWS} | changes
    return _training(config.changed(changes), updates, slots)


def _envs(size: int) -> contextlib.AbstractContextManager[Work]:
    # With fewer slots, most of the episodes that end in one unroll would not be learned from.
    return _catch(slots=1024, **{"engine.num_envs": size})


def _observation(size: int) -> contextlib.AbstractContextManager[Work]:
    return _catch(columns=size // ROWS)


def _actors(size: int) -> contextlib.AbstractContextManager[Work]:
    engine = LocalSettings(num_envs=ENVS, unroll_length=ROWS, actors=size)
    return _catch(RUNS * size, engine=engine)


@contextlib.contextmanager
def _capacity(size: int) -> Iterator[Work]:
    function, arguments = compiled_pass(size, PASS_STEPS)

    def work() -> None:
        jax.block_until_ready(function(*arguments))

    yield work


GROWING: dict[str, Growing] = {
    "episode": Growing(
        "steps of an episode",
        "an episode of each of 32 environments",
        (100, 300, 1000, 3000, 10_000),
        (20, 40),
        _episode,
    ),
    "capacity": Growing(
        "states in the paper's memory",
        "loss and gradient of an unroll of 20 steps",
        (250, 500, 1000, 2000, 4000, 8000),
        (8, 16),
        _capacity,
    ),
    "envs": Growing(
        "environments",
        "an episode of each environment",
        (1, 4, 16, 64, 256, 1024, 4096),
        (1, 2),
        _envs,
    ),
    "observation": Growing(
        "numbers in an observation",
        "an episode of each of 32 environments",
        (49, 196, 784, 3136, 12_544),
        (49, 98),
        _observation,
    ),
    "actors": Growing(
        "actors",
        "an episode of each environment, 32 for each actor",
        (1, 2, 4, 8, 16),
        (1, 2),
        _actors,
    ),
}
