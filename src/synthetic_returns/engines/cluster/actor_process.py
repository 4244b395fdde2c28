"""What runs in the process of a cluster's actor: environments, and a copy of the policy."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.acting.compiled_actor import CompiledActor
from synthetic_returns.acting.host_actor import HostActor
from synthetic_returns.agents.registry import make_learner
from synthetic_returns.config import Config
from synthetic_returns.engines.settings import ClusterSettings
from synthetic_returns.engines.shapes import network_of
from synthetic_returns.envs.base import Environment
from synthetic_returns.nn.networks import Network
from synthetic_returns.types import Key, Trajectory

__all__ = ["ActorProcess", "Weights", "to_weights"]

Weights = tuple[int, list[np.ndarray]]  # the version of a policy, and the arrays of its network


class ActorProcess:
    """Plays unrolls when asked to, with the weights it is given."""

    def __init__(self, config: Config, num_envs: int, seed: int, stream: int):
        """Prepares; the environments are started by the first unroll.

        Args:
          config: the settings.
          num_envs: environments of this actor.
          seed: of the run.
          stream: index of this actor.
        """
        self._config, self._num_envs, self._stream = config, num_envs, stream
        self._key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 2), stream)
        shapes, self._static = eqx.partition(network_of(config), _is_shape)
        self._structure = jax.tree.structure(shapes)
        assert isinstance(config.engine, ClusterSettings)
        self._streams = config.engine.actors
        self._version: int | None = None
        self._life: int | None = None
        self._network: Any = None
        self._player: HostActor | CompiledActor | None = None

    def unroll(self, weights: Weights, life: int) -> Trajectory:
        """The next unroll, as numpy arrays.

        Args:
          weights: what to act with.
          life: where it differs from the last one, all environments start again.
        """
        version, arrays = weights
        if version != self._version:
            learned = jax.tree.unflatten(self._structure, [jnp.asarray(x) for x in arrays])
            self._network = make_learner(self._config).behaviour(
                eqx.combine(learned, self._static), self._num_envs, self._stream, self._streams
            )
            self._version = version
        if self._player is None or life != self._life:
            self._begin(life)
        assert self._player is not None
        trajectory = self._player.unroll(self._network, self._config.engine.unroll_length)
        return jax.tree.map(np.asarray, trajectory)

    def _begin(self, life: int) -> None:
        if self._player is not None:
            self._player.close()
        self._player = _player(
            self._config, self._network, self._num_envs, jax.random.fold_in(self._key, life)
        )
        self._life = life


def to_weights(network: Network, version: int) -> Weights:
    """What is sent to actors."""
    return version, [np.asarray(x) for x in jax.tree.leaves(eqx.filter(network, eqx.is_array))]


def _is_shape(leaf: Any) -> bool:
    return isinstance(leaf, jax.ShapeDtypeStruct)


def _player(config: Config, network: Network, num_envs: int, key: Key) -> HostActor | CompiledActor:
    if isinstance(config.task, Environment):
        assert isinstance(config.engine, ClusterSettings)
        return CompiledActor(
            config.task,
            network,
            num_envs,
            key,
            stagger=config.engine.stagger,
            contributions=config.needs_contributions,
        )
    return HostActor(config.task, network, num_envs, key)
