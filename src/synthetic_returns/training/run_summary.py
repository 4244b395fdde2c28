"""The final result of a run, as a file."""

import math
from pathlib import Path
from typing import Any

from synthetic_returns.utils.files import RunError
from synthetic_returns.utils.reading import read_json_object

__all__ = ["portable", "read_summary"]

_LARGEST = 2**63  # whole number


def read_summary(path: Path) -> dict[str, Any]:
    """A result that others can rely on: every number that they ask for is there, and a number."""
    summary = read_json_object(path)
    result = summary.get("eval")
    if not isinstance(result, dict):
        raise RunError(f"{path} has no evaluation: restore the file, or evaluate the run again")
    summary["eval"] = {
        name: float("nan") if value is None else value for name, value in result.items()
    }
    measures = ("return_mean", "return_low", "return_high", *summary["eval"])
    needed = {f"eval.{name}": summary["eval"].get(name) for name in measures}
    needed |= {name: summary.get(name) for name in ("env_steps", "wall_s")}
    needed |= {name: summary[name] for name in ("steps_per_s", "seed") if name in summary}
    for name, value in needed.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or (isinstance(value, int) and abs(value) > _LARGEST):
            raise RunError(
                f"{name} of {path} is {value!r:.50} and must be a number: restore the file, or "
                "evaluate the run again"
            )
    return summary


def portable(value: Any) -> Any:
    """Plain data with null in the place of numbers that JSON does not know."""
    if isinstance(value, dict):
        return {key: portable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [portable(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
