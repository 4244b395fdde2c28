"""The parts of the paper's grid-world network that every peer shares, in PyTorch."""

from catch import SIZE
from torch import nn

WIDTH = 256


def torso() -> nn.Sequential:
    """``[N, 7, 7, 1]`` pixels to ``[N, 256]``: 2x2 convolutions of 32 and 64, then a layer."""
    side = SIZE - 2  # two 2x2 kernels without padding
    return nn.Sequential(
        nn.Flatten(),
        nn.Unflatten(1, (1, SIZE, SIZE)),  # one channel: last and first are the same memory
        nn.Conv2d(1, 32, 2),
        nn.ReLU(),
        nn.Conv2d(32, 64, 2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64 * side * side, WIDTH),
        nn.ReLU(),
    )
