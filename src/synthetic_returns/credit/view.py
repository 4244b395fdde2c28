"""The view of a task that credit methods get: the same for every method."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from synthetic_returns.credit.data.episode import EpisodeBatch
from synthetic_returns.nn.networks import unit_scale
from synthetic_returns.utils.checks import check_positive

__all__ = ["View", "differences", "joined"]


@dataclasses.dataclass(frozen=True)
class View:
    """The part of a task's episodes that credit methods see; all of it by default."""

    rows: tuple[int, int] | None = None
    """Crop images to these rows: the first one, and the first one that is left out."""
    columns: tuple[int, int] | None = None
    """Crop images to these columns: the first one, and the first one that is left out."""
    changes: bool = False
    """Show each frame minus the frame before it, instead of the frames; bytes count as shares of
    255. Where nothing changes, all states then look alike."""
    stride: int = 1
    """Keep every n-th state of an episode and sum the rewards in between. For long episodes."""
    truncated_reward: float | None = None
    """Replace the last reward of a truncated episode by this. For tasks in which running out
    of time avoids a penalty."""

    def __post_init__(self) -> None:
        check_positive("stride", self.stride)
        for name in ("rows", "columns"):
            part = getattr(self, name)
            if part is not None and not 0 <= part[0] < part[1]:
                raise ValueError(
                    f"{name} is {part}; give the first one, and the first one that is left out."
                )

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of what is seen of an observation."""
        cropped = self._cropped(shape)
        return (*cropped[:-1], cropped[-1] - 1) if self.changes else cropped

    def crop(self, observation: Any) -> Any:
        """What is kept of observations, numpy's or JAX's, with any leading axes."""
        if self.rows is not None:
            observation = observation[..., slice(*self.rows), :, :]
        if self.columns is not None:
            observation = observation[..., slice(*self.columns), :]
        return observation

    def seen(self, observation: Any) -> Any:
        """What methods see of observations, numpy's or JAX's, with any leading axes."""
        kept = self.crop(observation)
        return differences(kept) if self.changes else kept

    def rewards(self, reward: Any, last: Any, discount: Any) -> Any:
        """The rewards that methods learn from, numpy's or JAX's; the agent's stay as they are.

        Args:
          reward: of each transition.
          last: whether it ends its episode.
          discount: after it; a truncated episode goes on.
        """
        if self.truncated_reward is None:
            return reward
        where: Any = np.where if isinstance(reward, np.ndarray) else jnp.where
        return where(last & (discount > 0), np.float32(self.truncated_reward), reward)

    def kept(self, steps: Any) -> Any:
        """How many states are kept of this number, or of each of these."""
        return -(-steps // self.stride)

    def place(self, step: Any) -> tuple[Any, Any]:
        """The kept state that stands for each step, and whether the step is the one that is kept.

        This alone says how episodes are thinned, while they run and when they are whole.
        """
        return step // self.stride, step % self.stride == 0

    def thin(self, episodes: EpisodeBatch) -> EpisodeBatch:
        """Every n-th state of whole episodes, and the terminal one; rewards are summed between."""
        length, steps = episodes.length, np.arange(len(episodes.reward), dtype=np.int32)
        _, is_kept = self.place(steps)
        states = jnp.minimum(np.append(steps[is_kept], np.int32(len(steps)))[:, None], length[None])
        rows = jnp.arange(len(length), dtype=jnp.int32)[None]
        exists = np.arange(len(states) - 1, dtype=np.int32)[:, None] < self.kept(length)[None]

        def at(x: Array | None, index: Int[Array, "time batch"]) -> Any:
            return None if x is None else x[jnp.minimum(index, len(x) - 1), rows]

        def joined_steps(name: str) -> Any:
            x = getattr(episodes, name)
            if x is None:
                return None

            def step(so_far: Array, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
                total = joined(name, so_far, *inputs)
                return total, total

            _, totals = jax.lax.scan(step, jnp.zeros_like(x[0]), (x, is_kept))
            return jnp.where(exists, at(totals, states[1:] - 1), 0)

        return EpisodeBatch(
            observation=at(episodes.observation, states),
            reward=joined_steps("reward"),
            discount=joined_steps("discount"),
            length=self.kept(length),
            action=at(episodes.action, states[:-1]),
            log_probs=at(episodes.log_probs, states[:-1]),
            value=at(episodes.value, states[:-1]),
            contribution=joined_steps("contribution"),
        )

    def _cropped(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        parts = (self.rows, self.columns)
        if self.changes and (len(shape) != 3 or shape[-1] < 2):
            raise ValueError(
                f"changes is True and an observation has shape {shape}; changes are between the "
                "frames of an image of shape (height, width, frames): stack at least 2 frames, or "
                "set changes to False."
            )
        if parts == (None, None):
            return shape
        if len(shape) != 3 or any(
            part is not None and part[1] > size for part, size in zip(parts, shape[:2], strict=True)
        ):
            raise ValueError(
                f"rows is {self.rows}, columns is {self.columns} and an observation has shape "
                f"{shape}; they crop images of shape (height, width, channels) and must lie within "
                "them: use None to see all."
            )
        height, width = (
            size if part is None else part[1] - part[0]
            for part, size in zip(parts, shape[:2], strict=True)
        )
        return (height, width, shape[2])


def joined(name: str, so_far: Any, new: Any, is_kept: Any) -> Any:
    """A step together with those since the kept state that stands for it, numpy's or JAX's.

    Args:
      name: of what is known of steps: discounts multiply, all else adds up.
      so_far: of the steps before.
      new: of this step.
      is_kept: whether the step is the kept one itself, and has none before it.
    """
    where: Any = np.where if isinstance(new, np.ndarray) else jnp.where
    if name == "discount":
        return where(is_kept, 1, so_far) * new
    return where(is_kept, 0, so_far) + new


def differences(frames: Any) -> Any:
    """Each frame, on the last axis, minus the one before it.

    Frames are kept as they are, because bytes take less room than their differences; these are
    taken right before a method sees them.
    """
    return jnp.diff(unit_scale(jnp.asarray(frames)).astype(jnp.float32), axis=-1)
