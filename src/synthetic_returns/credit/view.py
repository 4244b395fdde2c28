"""The view of a task that credit methods get: the same for every method."""

import dataclasses
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Int

from synthetic_returns.credit.data.episode import EpisodeBatch
from synthetic_returns.utils.checks import check_positive

__all__ = ["View"]


@dataclasses.dataclass(frozen=True)
class View:
    """The part of a task's episodes that credit methods see; all of it by default."""

    rows: tuple[int, int] | None = None
    """Crop images to these rows: the first one, and the first one that is left out."""
    columns: tuple[int, int] | None = None
    """Crop images to these columns: the first one, and the first one that is left out."""
    changes: bool = False
    """Show each frame minus the frame before it, instead of the frames. Where nothing changes,
    all states then look alike."""
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

    def crop(self, observation: Any) -> Any:
        """What is seen of observations, numpy's or JAX's, with any leading axes."""
        if self.rows is not None:
            observation = observation[..., slice(*self.rows), :, :]
        if self.columns is not None:
            observation = observation[..., slice(*self.columns), :]
        return observation

    def kept(self, steps: int) -> int:
        """How many states are kept of this number."""
        return -(-steps // self.stride)

    def thin(self, episodes: EpisodeBatch) -> EpisodeBatch:
        """Every n-th state of whole episodes, and the terminal one; rewards are summed between."""
        time, length = self.kept(episodes.reward.shape[0]), episodes.length
        states = jnp.arange(time + 1, dtype=jnp.int32)[:, None] * self.stride
        states = jnp.minimum(states, length[None])
        rows = jnp.arange(len(length), dtype=jnp.int32)[None]

        def at(x: Array | None, index: Int[Array, "time batch"]) -> Any:
            return None if x is None else x[jnp.minimum(index, len(x) - 1), rows]

        def summed(x: Array | None) -> Any:
            if x is None:
                return None
            so_far = jnp.cumsum(x, axis=0)
            so_far = jnp.concatenate([jnp.zeros_like(so_far[:1]), so_far])
            return at(so_far, states[1:]) - at(so_far, states[:-1])

        discount = jnp.ones((time, len(length)))
        for between in range(self.stride):
            passed = states[:-1] + between
            discount *= jnp.where(passed < states[1:], at(episodes.discount, passed), 1)
        return EpisodeBatch(
            observation=at(episodes.observation, states),
            reward=summed(episodes.reward),
            discount=discount,
            length=-(-length // self.stride),
            action=at(episodes.action, states[:-1]),
            log_probs=at(episodes.log_probs, states[:-1]),
            value=at(episodes.value, states[:-1]),
            contribution=summed(episodes.contribution),
        )
