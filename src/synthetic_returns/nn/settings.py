"""The settings of networks: of a torso, from an observation to features, and of a core."""

import dataclasses

from synthetic_returns.utils.checks import check_positive, check_sizes
from synthetic_returns.utils.meanings import NoMeaning

__all__ = ["TorsoSettings", "check_core"]


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
        for name in ("kernel", "stride"):
            check_positive(name, getattr(self, name))
        for name in ("channels", "patches", "sizes"):
            check_sizes(name, getattr(self, name))
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

    def meaningless(self) -> dict[str, NoMeaning]:
        """Kernel and stride, if no layer is left for them."""
        if len(self.channels) > len(self.patches):
            return {}
        use = "channels with more channels than patches"
        if self.channels:
            reason = NoMeaning("patches", "which cut up the input of every layer", use)
        else:
            reason = NoMeaning("channels", "which is no layer to convolve with", use)
        return {"kernel": reason, "stride": reason}


def check_core(lstm_size: int, *, clock: bool) -> None:
    """Refuses a core that cannot be."""
    if lstm_size < 0:
        raise ValueError(
            f"lstm_size is {lstm_size}; use 0 for an agent without memory, or how many units."
        )
    if clock and lstm_size:
        raise ValueError(
            f"clock is True and lstm_size is {lstm_size}; an LSTM can count for itself: set "
            "lstm_size to 0, or clock to False."
        )
