"""What an episodic learner knows, as one file.

A NumPy archive: a header that describes the learner, the leaves of its state under their names,
and the episodes of its buffer one after another, without the padding.
"""

import importlib.metadata
import json
import zipfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.credit.episodic.learner import EpisodicLearner
from synthetic_returns.utils.files import RunError, replacing

__all__ = ["load_learner", "save_learner"]

FORMAT = 1

# What has to agree, and how to make it agree.
_REMEDIES = {
    "observation_shape": "wrap an environment with the observations that it was saved with",
    "observation_dtype": "wrap an environment with the observations that it was saved with",
    "longest": "make the wrapper with longest={there}",
    "slots": "make the wrapper with EpisodicOptions(slots={there}) and enough memory_mb",
}


def save_learner(path: Path, learner: EpisodicLearner) -> None:
    """Writes a file, whole or not at all."""
    buffer = learner.buffer
    held = np.arange(buffer.reward.shape[1])[None] < buffer.length[:, None]
    arrays = {f"state{name}": np.asarray(x) for name, x in _leaves(learner).items()}
    arrays |= {
        "header": np.array(json.dumps(_header(learner))),
        "updates_owed": np.array(learner.updates_owed),
        "seed": np.array(learner.seed),
        "seen": buffer.seen,
        "length": buffer.length,
        "observation": buffer.observation[held],
        "reward": buffer.reward[held],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def load_learner(path: Path, learner: EpisodicLearner) -> None:
    """Brings a learner of the same shapes to the saved state; checks before it changes anything."""
    arrays = _read(path)
    _check_header(path, json.loads(str(arrays["header"])), _header(learner))
    template = _leaves(learner)
    names = {f"state{name}": name for name in template}
    for name in sorted(names.keys() | {name for name in arrays if name.startswith("state")}):
        there = str(arrays[name].shape) if name in arrays else "missing"
        here = str(template[names[name]].shape) if name in names else "missing"
        if there != here:
            raise RunError(
                f"{path} belongs to another model: {name} is {there} in the file and {here} here; "
                "make the wrapper with the options and the encoder that it was saved with."
            )

    def loaded(tree_path: Any, leaf: Any) -> Any:
        name = f"state{jax.tree_util.keystr(tree_path)}"
        return jnp.array(arrays[name]) if name in names else leaf

    learner.state = jax.tree_util.tree_map_with_path(loaded, learner.state)
    learner.updates_owed = float(arrays["updates_owed"])
    learner.seed = int(arrays["seed"])
    buffer = learner.buffer
    buffer.seen, buffer.length = arrays["seen"], arrays["length"]
    held = np.arange(buffer.reward.shape[1])[None] < buffer.length[:, None]
    for name in ("observation", "reward"):
        kept = np.zeros_like(getattr(buffer, name))
        kept[held] = arrays[name]
        setattr(buffer, name, kept)


def _leaves(learner: EpisodicLearner) -> dict[str, Any]:
    return {
        jax.tree_util.keystr(path): leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(learner.state)
        if isinstance(leaf, jax.Array)
    }


def _header(learner: EpisodicLearner) -> dict[str, Any]:
    buffer = learner.buffer
    slots, longest, *shape = buffer.observation.shape
    return {
        "format": FORMAT,
        "version": importlib.metadata.version("synthetic-returns"),
        "observation_shape": shape,
        "observation_dtype": str(buffer.observation.dtype),
        "longest": longest,
        "slots": slots,
    }


def _read(path: Path) -> dict[str, np.ndarray]:
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}: check the path, or save first")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = dict(archive)
            json.loads(str(arrays["header"]))
            return arrays
    except (OSError, ValueError, LookupError, EOFError, zipfile.BadZipFile) as error:
        raise RunError(
            f"{path} is damaged, or was not written by a wrapper's save ({error}): use another file"
        ) from error


def _check_header(path: Path, there: dict[str, Any], here: dict[str, Any]) -> None:
    if there.get("format") != FORMAT:
        raise RunError(
            f"{path} has format {there.get('format')!r} and this version reads format {FORMAT}: "
            f"use the version of synthetic-returns that wrote it ({there.get('version')})"
        )
    for name, remedy in _REMEDIES.items():
        if there[name] != here[name]:
            raise RunError(
                f"{path} was saved with {name} {there[name]}, and this wrapper has {here[name]}: "
                f"{remedy.format(there=there[name])}, or start without the file"
            )
