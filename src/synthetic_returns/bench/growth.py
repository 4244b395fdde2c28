"""How time and memory grow: with episodes, memories, environments, observations and actors.

Every size is measured in a process of its own, which ends before the next begins: the most memory
that a process ever held says nothing about what it does later.
"""

import concurrent.futures
import dataclasses
import math
import multiprocessing
import time
from collections.abc import Callable, Iterable, Sequence

import jax.numpy as jnp

from synthetic_returns.bench.exponent import exponent, exponent_of_large
from synthetic_returns.bench.growing import GROWING
from synthetic_returns.bench.record import Record
from synthetic_returns.utils.process_memory import peak_mb, resident_mb
from synthetic_returns.utils.suggestions import unknown

__all__ = ["Cost", "measure", "run"]

REPEATS = 3
SECONDS = 1.0  # short work is repeated for at least so long


@dataclasses.dataclass(frozen=True)
class Cost:
    """What the work at one size costs.

    Attributes:
      seconds: of the fastest of several repetitions; other work on the machine only ever adds.
      mb: the most megabytes the process held, beyond those before the work was made ready; NaN
        where the system does not say.
    """

    seconds: float
    mb: float


def run(
    only: Iterable[str] = tuple(GROWING),
    *,
    quick: bool = False,
    measured: Callable[[str, int, bool], Cost] | None = None,
) -> list[Record]:
    """Measures everything that can grow.

    Args:
      only: names of what should grow.
      quick: two tiny sizes each, timed once: says that it works, not how fast.
      measured: what costs how much, by name, size and ``quick``; by default, a new process
        measures it.

    Returns:
      ``growth/<name>/<size>/s`` and ``growth/<name>/<size>/mb``, and the exponents of both:
      ``growth/<name>/time_exponent`` and ``growth/<name>/memory_exponent`` of all sizes,
      with ``_large`` of the larger half.
    """
    only = list(only)
    for name in only:
        if name not in GROWING:
            raise ValueError(unknown("thing that grows", name, GROWING))
    measured = measured or _in_new_process
    records = []
    for name in only:
        sizes = GROWING[name].quick_sizes if quick else GROWING[name].sizes
        records += _records(name, sizes, [measured(name, size, quick) for size in sizes])
    return records


def measure(name: str, size: int, quick: bool = False) -> Cost:
    """What one size costs in this process, which should be a new one for the sake of its memory.

    Args:
      name: of what grows.
      size: of it.
      quick: time it once.
    """
    jnp.zeros(1).block_until_ready()  # JAX is there
    before = resident_mb()
    with GROWING[name].prepare(size) as work:
        work()  # compiles
        spent: list[float] = []
        while not spent or (not quick and (len(spent) < REPEATS or sum(spent) < SECONDS)):
            start = time.perf_counter()
            work()
            spent.append(time.perf_counter() - start)
        return Cost(min(spent), peak_mb() - before)


def _records(name: str, sizes: Sequence[int], costs: Sequence[Cost]) -> list[Record]:
    records, series = [], {"time": ("s", [cost.seconds for cost in costs])}
    if not any(math.isnan(cost.mb) for cost in costs):
        series["memory"] = ("MB", [cost.mb for cost in costs])
    for unit, values in series.values():
        records += [
            Record(f"growth/{name}/{size}/{unit.lower()}", value, unit)
            for size, value in zip(sizes, values, strict=True)
        ]
    for kind, (_, values) in series.items():
        records += [
            Record(f"growth/{name}/{kind}_exponent", exponent(sizes, values), ""),
            Record(f"growth/{name}/{kind}_exponent_large", exponent_of_large(sizes, values), ""),
        ]
    return records


def _in_new_process(name: str, size: int, quick: bool) -> Cost:
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(measure, name, size, quick).result()
