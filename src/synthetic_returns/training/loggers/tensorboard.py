"""TensorBoard: event files in the run directory."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

__all__ = ["TensorBoardLogger"]


class TensorBoardLogger:
    """Writes the event files of one run.

    Args:
      path: where they go.
      last_kept_step: the step of the checkpoint from which the run goes on, -1 for none.
        TensorBoard forgets what earlier files say about later steps.
    """

    def __init__(self, path: Path, last_kept_step: int):
        # Slow to import, and not needed by those who only read metrics.
        from tensorboardX import SummaryWriter

        event_files = len(list(path.glob("events.*")))
        self._writer = SummaryWriter(
            str(path),
            purge_step=last_kept_step + 1 if event_files else None,
            flush_secs=5,
            # The name is otherwise only unique to the second, and a second writer would overwrite.
            filename_suffix=f".{event_files:04d}",
        )

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Adds one point to each curve."""
        for name, value in values.items():
            self._writer.add_scalar(name, float(value), step)

    def image(self, step: int, name: str, pixels: np.ndarray) -> None:
        """Adds a picture."""
        layout = "HW" if pixels.ndim == 2 else "HWC"
        self._writer.add_image(name, pixels, step, dataformats=layout)

    def close(self) -> None:
        """Flushes and closes."""
        self._writer.close()
