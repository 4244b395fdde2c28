"""The one interface of all loggers, and finding them by name."""

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from synthetic_returns.training.runs import Run
from synthetic_returns.utils.suggestions import unknown

__all__ = ["LOGGERS", "MetricsLogger", "check_loggers", "make_logger"]

LOGGERS = ("wandb", "mlflow")  # each a package and an extra of this one; TensorBoard always is


@runtime_checkable
class MetricsLogger(Protocol):
    """Shows what a run measures; ``loggers.tags`` says how things are named."""

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Shows finite numbers by name, after this many environment steps."""
        ...

    def image(self, step: int, name: str, pixels: np.ndarray) -> None:
        """Shows uint8 pixels, ``[H, W]`` or ``[H, W, 3]``."""
        ...

    def close(self) -> None:
        """Sends what is left; harmless when repeated."""
        ...


def check_loggers(names: Sequence[str]) -> None:
    """Refuses loggers that do not exist or whose package is not installed."""
    for name in names:
        if name not in LOGGERS:
            raise ValueError(unknown("logger", name, LOGGERS))
        if importlib.util.find_spec(name) is None:
            raise ValueError(
                f"--log {name} needs the package {name}, which is not installed: "
                f"pip install 'synthetic-returns[{name}]', or leave --log out."
            )


def make_logger(name: str, run: Run) -> MetricsLogger:
    """The logger of this name for a run that is being written."""
    check_loggers([name])
    return importlib.import_module(f"synthetic_returns.training.loggers.{name}").make(run)
