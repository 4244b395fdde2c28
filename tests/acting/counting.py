"""An environment and a network that only count, so that any step out of place is an inequality."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from synthetic_returns.envs.base import Environment
from synthetic_returns.nn.lstm import LstmCore, LstmState
from synthetic_returns.nn.networks import AgentNetwork, MlpTorso
from synthetic_returns.types import Key, TimeStep, first_step, next_step

ACTIONS = 3
TIME, ACTION, LENGTH = 0, 1, 2  # what the parts of an observation are


class CountingState(eqx.Module):
    time: Int[Array, ""]
    length: Int[Array, ""]


@dataclasses.dataclass(frozen=True)
class CountingEnv(Environment[CountingState]):
    """Episodes of random length; the reward names the time and the action that was taken.

    Observation: time since the episode began, the action before (-1 at first), the length.
    Reward: ``10 * time + action``.
    Termination: after ``length`` steps, drawn from 1 to ``longest``; the discount is 0 if the
    length is even, else the end is a truncation.
    """

    longest: int = 5

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (3,)

    @property
    def num_actions(self) -> int:
        return ACTIONS

    @property
    def max_episode_steps(self) -> int:
        return self.longest

    @property
    def event_names(self) -> tuple[str, ...]:
        return ("success", "zero")

    def reset(self, key: Key) -> tuple[CountingState, TimeStep]:
        length = jax.random.randint(key, (), 1, self.longest + 1)
        state = CountingState(jnp.int32(0), length)
        return state, first_step(_observe(state, jnp.int32(-1)), self.event_names)

    def step(self, state: CountingState, action: Int[Array, ""]) -> tuple[CountingState, TimeStep]:
        state = CountingState(state.time + 1, state.length)
        last = state.time == state.length
        return state, next_step(
            _observe(state, action),
            reward=(10 * state.time + action).astype(jnp.float32),
            last=last,
            discount=jnp.where(last & (state.length % 2 == 0), 0.0, 1.0),
            events={
                "success": jnp.where(last, 1.0, 0.0),
                "zero": jnp.where(action == 0, 1.0, 0.0),
            },
        )

    def render(self, state: CountingState) -> np.ndarray:
        return np.zeros((1, 1, 3), np.uint8)


def _observe(state: CountingState, action: Int[Array, ""]) -> Float[Array, "3"]:
    return jnp.stack([state.time, action, state.length]).astype(jnp.float32)


class Identity(MlpTorso):
    def __init__(self):
        super().__init__((3,), (3,), key=jax.random.key(0))

    def __call__(self, observation: Float[Array, "*shape"]) -> Float[Array, "*batch size"]:
        return observation


class CountingCore(LstmCore):
    """Counts the steps of the episode, the first one as 1."""

    def __init__(self):
        super().__init__(3, 1, key=jax.random.key(0))

    def __call__(
        self,
        x: Float[Array, "time batch n_in"],
        first: Bool[Array, "time batch"],
        state: LstmState,
    ) -> tuple[Float[Array, "time batch size"], LstmState]:
        counts = []
        count = state.hidden
        for first_t in first:
            count = jnp.where(first_t[:, None], 0, count) + 1
            counts.append(count)
        return jnp.stack(counts), LstmState(count, state.cell)


class CountingNetwork(AgentNetwork):
    """Takes the action ``count % ACTIONS``; the largest logit is 1000 + count."""

    def __init__(self):
        super().__init__(
            Identity(), 3, lstm_size=1, policy_size=1, num_actions=ACTIONS, key=jax.random.key(0)
        )
        self.core = CountingCore()

    def heads(
        self, hidden: Float[Array, "*batch size"]
    ) -> tuple[Float[Array, "*batch actions"], Float[Array, "*batch"]]:
        count = hidden[..., 0]
        chosen = jax.nn.one_hot(count.astype(jnp.int32) % ACTIONS, ACTIONS)
        return chosen * (1000 + count[..., None]), count
