"""Acting in environments that are written in JAX, an unroll at a time."""

import equinox as eqx
import jax

from synthetic_returns.acting import actor
from synthetic_returns.acting.actor import ActorState
from synthetic_returns.envs.base import Environment, VectorEnvironment
from synthetic_returns.nn.networks import Network
from synthetic_returns.types import Key, Trajectory

__all__ = ["CompiledActor"]


class CompiledActor:
    """A batch of environments and the agent in them: ``actor.unroll`` with a state of its own.

    It is used like a ``HostActor``, and does in one call what that does in one for every step.
    """

    def __init__(
        self,
        task: Environment,
        network: Network,
        num_envs: int,
        key: Key,
        *,
        stagger: bool = False,
        contributions: bool = False,
    ):
        """Starts the environments.

        Args:
          task: what to play.
          network: what acts first.
          num_envs: environments stepped together.
          key: decides all that is random; consumed here.
          stagger: begin them at evenly spread points of their first episode.
          contributions: let steps tell their true contributions.
        """
        self._env = VectorEnvironment(task, contributions=contributions)
        state = actor.start(self._env, network, num_envs, key)
        self._state: ActorState = _stagger(self._env, network, state) if stagger else state

    def unroll(self, network: Network, length: int) -> Trajectory:
        """Acts for ``length`` steps from where the last unroll ended."""
        self._state, trajectory = _unroll(self._env, network, self._state, length)
        return jax.block_until_ready(trajectory)

    def close(self) -> None:
        """Does nothing; a ``HostActor`` has environments to close."""


_stagger = eqx.filter_jit(actor.stagger)
_unroll = eqx.filter_jit(actor.unroll)
