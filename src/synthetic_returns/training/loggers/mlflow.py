"""MLflow; imported only when a run asks for it."""

import importlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from synthetic_returns.training.runs import Run
from synthetic_returns.utils.files import write_atomically
from synthetic_returns.utils.settings import dotted

__all__ = ["MlflowLogger", "make"]

EXPERIMENT = "synthetic-returns"
ID_FILE = "mlflow_run_id"  # in the run directory, so that a resumed run goes on in the same place


def make(run: Run) -> "MlflowLogger":
    """The logger of a run."""
    return MlflowLogger(run)


class MlflowLogger:
    """One run of the experiment ``synthetic-returns``, or of ``MLFLOW_EXPERIMENT_NAME``."""

    def __init__(self, run: Run):
        self._client: Any = importlib.import_module("mlflow").MlflowClient()
        file = run.path / ID_FILE
        if file.exists():
            self._id = file.read_text(encoding="utf-8").strip()
            self._client.update_run(self._id, status="RUNNING")
        else:
            self._id = self._start(run)
            write_atomically(file, self._id)
        self._open = True

    def _start(self, run: Run) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", EXPERIMENT)
        experiment = self._client.get_experiment_by_name(name)
        number = experiment.experiment_id if experiment else self._client.create_experiment(name)
        started = self._client.create_run(number, run_name=run.path.name).info.run_id
        for setting, value in dotted(run.config).items():
            self._client.log_param(started, setting, value)
        return started

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Sends numbers."""
        for name, value in values.items():
            self._client.log_metric(self._id, name, float(value), step=step)

    def image(self, step: int, name: str, pixels: np.ndarray) -> None:
        """Sends a picture."""
        self._client.log_image(self._id, pixels, artifact_file=f"{name}/{step:012d}.png")

    def close(self) -> None:
        """Marks the run as ended."""
        if self._open:
            self._client.set_terminated(self._id)
            self._open = False
