"""What the wrappers keep of an observation: one array of fixed shape and type."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import Space, spaces
from gymnasium.vector.utils import concatenate, create_empty_array

from synthetic_returns.utils.spaces import is_bounded

__all__ = ["ObservationFormat", "observation_format"]

ObservationFunction = Callable[[Any], np.ndarray]


@dataclasses.dataclass(frozen=True)
class ObservationFormat:
    """How a batch of observations becomes an array ``[num_envs, *shape]``.

    Attributes:
      shape: of one observation.
      dtype: small integers stay what they are, so that images take little memory.
      scale: what the encoder multiplies observations with, to bring them to about 1.
      unbounded: whether it standardises them instead, because nobody knows how large they are.
      kinds: for a Discrete space, the number of its values; else 0.
      space: of a single environment.
      function: from a batch of observations to the array; None takes them as they are.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    scale: np.ndarray
    space: Space
    kinds: int = 0
    start: int = 0
    function: ObservationFunction | None = None
    unbounded: bool = False

    def __call__(self, observation: Any) -> np.ndarray:
        """A batch as an array of its own: environments may reuse theirs."""
        if self.function is not None:
            observation = self.function(observation)
        array = np.array(observation)
        if array.shape[1:] != self.shape:
            raise ValueError(
                f"the observations have shape {array.shape}, the first axis the environments; "
                f"each was expected to have shape {self.shape}: return what the observation space "
                "says, or the same shape on every step from observation_fn."
            )
        return (array - self.start if self.kinds else array).astype(self.dtype, copy=False)

    def final(self, observations: Sequence[Any], num_envs: int) -> np.ndarray:
        """Single observations as an array; the function gets a whole batch, as it expects."""
        filled = [*observations, *[observations[-1]] * (num_envs - len(observations))]
        batch = concatenate(self.space, filled, create_empty_array(self.space, num_envs))
        return self(batch)[: len(observations)]

    @property
    def channels_first(self) -> bool:
        """Whether it looks like an image whose channels come first, as in frame stacks."""
        return len(self.shape) == 3 and self.shape[0] < self.shape[-1]


def observation_format(
    space: Space, num_envs: int, function: ObservationFunction | None
) -> ObservationFormat:
    """The format for a space, or for what the user's function makes of it.

    Args:
      space: of a single environment.
      num_envs: how many observations make a batch.
      function: from a batch of observations to an array ``[num_envs, ...]``; None for none.
    """
    if function is not None:
        return _format_of(space, function, num_envs)
    if isinstance(space, spaces.Discrete):
        return ObservationFormat(
            (), np.dtype(np.int32), np.ones((), np.float32), space, int(space.n), int(space.start)
        )
    if isinstance(space, spaces.Box):
        dtype = _kept(space.dtype)
        bounded = is_bounded(space)
        bound = np.maximum(np.abs(space.low), np.abs(space.high)).astype(np.float64)
        scale = 1 / np.where(bounded & (bound > 0), bound, 1.0)
        if np.all(scale == scale.flat[0]):
            scale = scale.flat[0]
        unbounded = dtype == np.float32 and not bounded.all()
        return ObservationFormat(
            space.shape, dtype, np.asarray(scale, np.float32), space, unbounded=unbounded
        )
    raise ValueError(
        f"the observation space is {space}; Box and Discrete are supported: pass "
        "observation_fn=..., a function from a batch of observations to an array [num_envs, ...], "
        "for instance lambda observation: observation['image']."
    )


def _format_of(space: Space, function: ObservationFunction, num_envs: int) -> ObservationFormat:
    array = np.asarray(function(create_empty_array(space, num_envs)))
    if array.ndim < 1 or len(array) != num_envs or array.dtype.kind not in "biuf":
        raise ValueError(
            f"observation_fn returned {array.dtype}{list(array.shape)} for a batch of {num_envs} "
            "observations; it must return an array of numbers whose first axis is the "
            f"environments: [{num_envs}, ...]."
        )
    dtype = _kept(array.dtype)
    scale = 1 / 255 if dtype == np.uint8 and array.dtype != np.bool_ else 1.0  # bytes are pixels
    return ObservationFormat(
        array.shape[1:],
        dtype,
        np.asarray(scale, np.float32),
        space,
        function=function,
        unbounded=dtype == np.float32,
    )


def _kept(dtype: Any) -> np.dtype:
    """The type in which numbers are kept: bytes as they are, anything else as float32."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return np.dtype(np.uint8)
    is_byte = dtype.kind in "iu" and dtype.itemsize == 1
    return dtype if is_byte else np.dtype(np.float32)
