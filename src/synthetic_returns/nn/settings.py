"""The settings of a torso: from an observation to features."""

import dataclasses

__all__ = ["TorsoSettings"]


@dataclasses.dataclass(frozen=True)
class TorsoSettings:
    """Convolutions, if there are any, then dense layers."""

    channels: tuple[int, ...] = ()
    """Output channels of each convolution; without any, the torso is an MLP."""
    kernel: int = 2
    """Side of the square convolution kernels."""
    stride: int = 1
    """Stride of the convolutions."""
    patches: tuple[int, ...] = ()
    """Side of the patches into which each of the first layers cuts its input; replaces kernel
    and stride there."""
    sizes: tuple[int, ...] = (256,)
    """Units of each dense layer."""

    def __post_init__(self) -> None:
        if not self.sizes:
            raise ValueError("sizes is empty; a torso needs at least one dense layer.")
        if len(self.patches) > len(self.channels):
            raise ValueError(
                f"there are {len(self.patches)} patches and {len(self.channels)} channels; give at "
                "most one for each layer."
            )

    @property
    def windows(self) -> tuple[tuple[int, int], ...]:
        """Side of the square kernel, and stride, of each convolution."""
        others = len(self.channels) - len(self.patches)
        return (*((side, side) for side in self.patches), *[(self.kernel, self.stride)] * others)
