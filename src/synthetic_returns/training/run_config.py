"""The settings of a run that somebody else may have made."""

import os
import sys
from typing import Any

from synthetic_returns.config import Config
from synthetic_returns.training.runs import Run
from synthetic_returns.utils.files import RunError

__all__ = ["read_config"]

TRUSTED = "SYNTHETIC_RETURNS_IMPORT"  # modules with tasks that runs may import, with commas between


def read_config(run: Run, *, named: str | None = None) -> Config:
    """The settings of a run; refuses, by its name, one that this version does not understand.

    Args:
      run: the run.
      named: the task that the user has named; its module may be imported.
    """
    _check_imports(run, named)
    try:
        return Config.from_dict(run.config)
    except RunError as error:
        raise RunError(f"{run.path}: {error}") from error
    except ImportError:
        raise  # it says which extra is missing
    # Settings of another version, or of nobody, fail in as many ways as there are settings.
    except Exception as error:
        raise RunError(
            f"{run.path} was written by synthetic-returns {run.version} and this version cannot "
            f"read its settings ({error}): use that version, or train it again"
        ) from error


def _check_imports(run: Run, named: str | None) -> None:
    """Refuses a task of Gymnasium's whose name would import a module that was not allowed."""
    task: Any = run.config.get("task")
    ids = [str(run.config.get("task_name")).removeprefix("gym:")]
    if isinstance(task, dict):
        ids.append(str(task.get("env_id", "")))
    allowed = {*sys.modules, *os.environ.get(TRUSTED, "").split(",")}
    for env_id in ids:
        module, colon, _ = env_id.partition(":")
        ours = env_id.split(":")[0] in ("ale", "gymnax")
        if colon and not ours and module not in allowed and f"gym:{env_id}" != named:
            raise RunError(
                f"{run.path} is about the task gym:{env_id}, which would import the module "
                f"{module!r}: if you trust the run, set {TRUSTED}={module}, or import it first"
            )
