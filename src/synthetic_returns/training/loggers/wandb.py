"""Weights & Biases; imported only when a run asks for it."""

import importlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from synthetic_returns.training.runs import Run

__all__ = ["WandbLogger", "make"]

PROJECT = "synthetic-returns"
STEP = "env_steps"


def make(run: Run) -> "WandbLogger":
    """The logger of a run; one that is resumed goes on in the same place."""
    return WandbLogger(run)


class WandbLogger:
    """One run of the project ``synthetic-returns``, or of ``WANDB_PROJECT``."""

    def __init__(self, run: Run):
        self._wandb: Any = importlib.import_module("wandb")
        self._run: Any = self._wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=run.path.name,
            id=_stable_id(run),
            resume="allow",
            reinit="create_new",  # several seeds may be trained in one process
            dir=str(run.path),
            config=run.config,
        )
        # Steps of the environment are the axis: after a resume, some come a second time.
        self._run.define_metric(STEP)
        self._run.define_metric("*", step_metric=STEP)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Sends numbers."""
        self._run.log({STEP: step, **values})

    def image(self, step: int, name: str, pixels: np.ndarray) -> None:
        """Sends a picture."""
        self._run.log({STEP: step, name: self._wandb.Image(pixels)})

    def close(self) -> None:
        """Waits until everything is sent."""
        self._run.finish()


def _stable_id(run: Run) -> str:
    """The same for every session of a run, and different for runs of the same name."""
    moment = "".join(character for character in run.created if character.isdigit())
    name = "".join(x if x.isalnum() or x in "-_" else "-" for x in run.path.name)
    return f"{name}-{moment}-{run.config.get('seed', 0)}"[:64]
