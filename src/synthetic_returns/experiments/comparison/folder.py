"""The folder of a comparison remembers its settings: it may grow, but is never overwritten."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from synthetic_returns.experiments.experiment import Experiment
from synthetic_returns.utils.files import RunError, write_atomically

__all__ = ["claim_results"]

FILE = "comparison.json"
GROWS = ("methods", "seeds")


def claim_results(folder: Path, experiments: Sequence[Experiment]) -> None:
    """Makes the folder of a comparison, or checks that it is of the same one.

    More tasks, methods or seeds may come to it.

    Args:
      folder: where the results go.
      experiments: what is compared, with the arms of all methods that were asked for.

    Raises:
      RunError: the folder holds something else.
    """
    now = {e.name: _settings(e) for e in experiments}
    path = folder / FILE
    if path.exists():
        before = _read(path)
        differences = [
            text for task in before for text in _differences(task, before[task], now.get(task))
        ]
        if differences:
            raise RunError(
                f"{folder} has the results of another comparison ({'; '.join(differences)}): use "
                "its settings, with more tasks, methods or seeds if you like; or choose another "
                "--out"
            )
    elif folder.exists() and any(entry.name != ".lock" for entry in folder.iterdir()):
        raise RunError(
            f"{folder} exists and is not the folder of a comparison: choose another --out"
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(now, indent=2) + "\n")


def _settings(experiment: Experiment) -> dict[str, Any]:
    presets = {arm.preset for arm in experiment.arms}
    return {
        "task": experiment.task,
        "preset": ", ".join(sorted(presets)),
        "flags": list(experiment.flags),
        "steps": experiment.steps,
        "solved": experiment.solved,
        "methods": sorted(arm.name for arm in experiment.arms),
        "seeds": experiment.seeds,
    }


def _differences(task: str, before: Mapping[str, Any], now: Mapping[str, Any] | None) -> list[str]:
    if now is None:
        return [f"{task} is left out now"]
    found = [
        f"{task}: {name} {before.get(name)} then, {now[name]} now"
        for name in now
        if name not in GROWS and before.get(name) != now[name]
    ]
    if left_out := sorted(set(before.get("methods", ())) - set(now["methods"])):
        found.append(f"{task}: {', '.join(left_out)} left out now")
    if before.get("seeds", 0) > now["seeds"]:
        found.append(f"{task}: {before['seeds']} seeds then, {now['seeds']} now")
    return found


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict) and all(isinstance(x, dict) for x in found.values()):
            return found
    except ValueError:
        pass
    raise RunError(f"{path} is damaged: restore it, or choose another --out")
