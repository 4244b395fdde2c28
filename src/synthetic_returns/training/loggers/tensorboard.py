"""TensorBoard: event files in the run directory."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
        event_files = len(list(path.glob("events.*")))
        self._writer = _import_writer()(
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


def _import_writer() -> Any:
    """The writer of tensorboardX: not needed by those who only read metrics.

    Where torch is installed tensorboardX imports it, for the sake of one annotation, and every run
    would wait for seconds.
    """
    hidden = "torch" not in sys.modules
    if hidden:
        sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        from tensorboardX import SummaryWriter
    finally:
        if hidden:
            del sys.modules["torch"]
    return SummaryWriter
