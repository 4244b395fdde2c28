"""The state-associative pass against the definition: loss and gradient, the same work both ways.

The definition evaluates ``c`` over the whole memory at every step of the unroll, which is what the
module released with the paper does. Its activations for a whole batch do not fit into the memory of
a laptop, so its batch is worked off in slices; the arithmetic is the same.

Memories are half full, as they are on average; figures with ``_full`` are of full ones, the worst
case of ours.
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from synthetic_returns.bench.record import Record
from synthetic_returns.credit.paper.association import associate
from synthetic_returns.credit.paper.memory import EpisodicMemory, remember
from synthetic_returns.credit.paper.sa_model import StateAssociativeModel

__all__ = ["compiled_pass", "naive_loss", "run", "scaling"]

BATCH, FEATURES = 32, 256
SLICE = 2  # batch rows that the definition works on at once


def run() -> list[Record]:
    """The speed-ups, the peak memory, and the time against capacity + T."""
    records = []
    for capacity, time_steps in ((2000, 80), (140, 20)):
        label = f"c{capacity}_t{time_steps}"
        fast, slow = compiled_pass(capacity, time_steps), _naive(capacity, time_steps)
        fast_s = _seconds(fast, repeats=5)
        full_s = _seconds(compiled_pass(capacity, time_steps, steps=capacity), repeats=5)
        slow_s = _seconds(slow, repeats=1 if capacity > 1000 else 3) * (BATCH // SLICE)
        records += [
            Record(f"sa_speedup_{label}", slow_s / fast_s, "x"),
            Record(f"sa_speedup_{label}_full", slow_s / full_s, "x"),
            Record(f"sa_ms_{label}", 1e3 * fast_s, "ms"),
            Record(f"sa_naive_ms_{label}", 1e3 * slow_s, "ms"),
            Record(f"sa_peak_mb_{label}", _peak_mb(fast), "MB"),
        ]
    return records + scaling()


def scaling() -> list[Record]:
    """Milliseconds of a pass for growing capacity + T: a straight line."""
    records = []
    for capacity in (250, 500, 1000, 2000, 4000):
        time_steps = capacity // 25
        seconds = _seconds(compiled_pass(capacity, time_steps), repeats=3)
        records.append(Record(f"sa_ms_per_{capacity + time_steps}_states", 1e3 * seconds, "ms"))
    return records


def naive_loss(
    model: StateAssociativeModel,
    memory: EpisodicMemory,
    features: Float[Array, "time batch size"],
    first: Bool[Array, "time batch"],
    reward: Float[Array, "time batch"],
) -> Float[Array, ""]:
    """Eq. (basic_arch) by definition: every step evaluates ``c`` over the whole memory."""

    def step(memory: EpisodicMemory, inputs: tuple[Array, Array, Array]):
        s_t, first_t, r_t = inputs
        steps = jnp.where(first_t, 0, memory.steps)
        filled = jnp.arange(memory.capacity, dtype=jnp.int32)[None] < steps[:, None]
        c = model.contribution(memory.states)
        c_sum_tm1 = jnp.sum(jnp.where(filled, c, 0), axis=1)
        r_hat = model.gate(s_t) * c_sum_tm1 + model.baseline(s_t)
        return remember(memory, s_t[None], first_t[None]), jnp.square(r_t - r_hat)

    _, errors = jax.lax.scan(step, memory, (features, first, reward))
    return jnp.mean(errors)


def _problem(
    capacity: int, time_steps: int, batch: int, steps: int | None = None
) -> tuple[Any, ...]:
    keys = jax.random.split(jax.random.key(0), 4)
    model = StateAssociativeModel(FEATURES, key=keys[0])
    memory = EpisodicMemory(
        jax.random.normal(keys[1], (batch, capacity, FEATURES)),
        jnp.full(batch, capacity // 2 if steps is None else steps, jnp.int32),
        jnp.ones(batch, bool),
    )
    features = jax.random.normal(keys[2], (time_steps, batch, FEATURES))
    first = jnp.zeros((time_steps, batch), bool)
    reward = jax.random.normal(keys[3], (time_steps, batch))
    return model, memory, features, first, reward


def _compiled(loss: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    function = jax.jit(jax.value_and_grad(loss))
    return function.lower(*arguments).compile(), arguments


def compiled_pass(
    capacity: int, time_steps: int, steps: int | None = None
) -> tuple[Any, tuple[Any, ...]]:
    """Loss and gradient of one unroll as a compiled function, and its arguments.

    Args:
      capacity: states in the memory of each row of the batch.
      time_steps: length of the unroll.
      steps: how many of the states are there already; by default half of them.
    """

    def loss(model: StateAssociativeModel, *rest: Any) -> Float[Array, ""]:
        return associate(model, *rest).loss

    return _compiled(loss, _problem(capacity, time_steps, BATCH, steps))


def _naive(capacity: int, time_steps: int) -> tuple[Any, tuple[Any, ...]]:
    return _compiled(naive_loss, _problem(capacity, time_steps, SLICE))


def _seconds(work: tuple[Any, tuple[Any, ...]], repeats: int) -> float:
    """The best of several runs: the machine's other work only ever adds time."""
    function, arguments = work
    jax.block_until_ready(function(*arguments))
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        best = min(best, time.perf_counter() - start)
    return best


def _peak_mb(work: tuple[Any, tuple[Any, ...]]) -> float:
    """What the compiled pass holds at once: arguments, results and temporaries."""
    function, _ = work
    analysis = function.memory_analysis()
    held = (
        analysis.argument_size_in_bytes
        + analysis.output_size_in_bytes
        + analysis.temp_size_in_bytes
    )
    return held / 1e6
