"""How the data of an engine lies on several devices, and functions on the share of each."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jax.sharding import Mesh, PartitionSpec

from synthetic_returns.agents.agent import LearnerState
from synthetic_returns.types import Trajectory
from synthetic_returns.utils.devices import AXIS

__all__ = [
    "ALIKE",
    "COLUMNS",
    "ROWS",
    "learner_layout",
    "spread",
    "spread_update",
    "trajectory_layout",
]

# Alike on all devices, or spread over the first or second axis.
ALIKE, ROWS, COLUMNS = PartitionSpec(), PartitionSpec(AXIS), PartitionSpec(None, AXIS)


def learner_layout(state: LearnerState) -> Any:
    """Parameters are alike on all devices; each has the memory of its own environments."""
    layout = jax.tree.map(lambda _: ALIKE, state)
    rows = jax.tree.map(lambda _: ROWS, state.memory)
    return eqx.tree_at(lambda s: s.memory, layout, rows, is_leaf=lambda x: x is None)


def trajectory_layout(trajectory: Trajectory) -> Any:
    """Time comes first, so the batch is the second axis, but of the core's state."""
    layout = jax.tree.map(lambda _: COLUMNS, trajectory)
    rows = jax.tree.map(lambda _: ROWS, trajectory.core)
    return eqx.tree_at(lambda t: t.core, layout, rows, is_leaf=lambda x: x is None)


def spread(function: Callable[..., Any], mesh: Mesh, takes: Any, gives: Any) -> Callable[..., Any]:
    """The function on every device's share of the batch."""
    return jax.shard_map(function, mesh=mesh, in_specs=takes, out_specs=gives, check_vma=False)


def spread_update(
    update: Callable[..., Any], mesh: Mesh, state: LearnerState, trajectory: Any
) -> Callable[..., Any]:
    """The learner's update on every device's share of the batch.

    Args:
      update: of a learner that sums over the devices.
      mesh: the devices.
      state: any with the structure of those that will be updated.
      trajectory: how unrolls lie.
    """
    learner = learner_layout(state)
    return spread(update, mesh, (learner, trajectory, COLUMNS), (learner, ALIKE))
