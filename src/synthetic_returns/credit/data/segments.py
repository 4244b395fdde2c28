"""Segments of the trajectories that actors play."""

from typing import Any

import jax

from synthetic_returns.credit.data.episode import Segment
from synthetic_returns.credit.view import View
from synthetic_returns.types import StepType, Trajectory

__all__ = ["segment_of"]


def segment_of(trajectory: Trajectory, view: View) -> Segment:
    """What credit methods see of a trajectory."""
    timestep = trajectory.timestep
    rest = _rest(timestep.step_type, timestep.reward, timestep.discount, trajectory.logits)
    # Not a part of what is compiled, which would copy it.
    seen = view.crop(timestep.observation)
    told = timestep.contribution
    return Segment(
        observation=seen,
        action=trajectory.action,
        value=trajectory.value,
        contribution=None if told is None else told[1:],
        **rest,
    )


@jax.jit
def _rest(step_type: Any, reward: Any, discount: Any, logits: Any) -> dict[str, Any]:
    return {
        "first": step_type == StepType.FIRST,
        "last": step_type == StepType.LAST,
        "reward": reward[1:],
        "discount": discount[1:],
        "log_probs": jax.nn.log_softmax(logits),
    }
