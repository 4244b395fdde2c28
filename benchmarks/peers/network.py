"""The parts of the paper's networks that peers share, in PyTorch."""

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


class AtariTorso(nn.Module):
    """``[N, 4, 84, 84]`` bytes to ``[N, 256]``: 3x3 convolutions of stride 2, then a layer."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(4, 32, 3, 2),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, 2),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, 2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(64 * 9 * 9, WIDTH),
            nn.ReLU(),
        )

    def forward(self, frames):
        return self.layers(frames.float() / 255)
