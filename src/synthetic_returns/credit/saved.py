"""What a driver knows, as one file.

A NumPy archive: a header that describes the method and its episodes, the leaves of its state under
their names, and the episodes of its buffer one after another, without the padding.
"""

import importlib.metadata
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.credit.data.buffer import OF_EPISODES, EpisodeBuffer
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.utils.files import RunError, replacing

__all__ = ["load_driver", "read_about", "save_driver"]

FORMAT = 3

# What has to agree, and how to make it agree.
_REMEDIES = {
    "method": "make the wrapper with method={there!r}",
    "observation_shape": "wrap an environment with the observations that it was saved with",
    "observation_dtype": "wrap an environment with the observations that it was saved with",
    "stride": "make the wrapper with a view whose stride is {there}",
}


def save_driver(
    path: Path | io.BytesIO, driver: CreditDriver, about: dict[str, Any] | None = None
) -> None:
    """Writes a file, whole or not at all.

    Args:
      path: the file, or something to write to.
      driver: what is written.
      about: what else there is to know, as JSON can say it; ``read_about`` gives it back.
    """
    buffer = driver.buffer
    arrays = {f"state{name}": np.asarray(x) for name, x in _leaves(driver).items()}
    arrays |= {
        "header": np.array(json.dumps(_header(driver))),
        "about": np.array(json.dumps(about or {})),
        "updates": np.array(driver.updates),
        "updates_owed": np.array(driver.updates_owed),
        "seed": np.array(driver.seed),
    } | {name: getattr(buffer, name) for name in OF_EPISODES}
    arrays |= {
        f"buffer/{name}": array[_held(array, buffer.length, name)]
        for name, array in buffer.arrays.items()
    }
    if not isinstance(path, Path):
        np.savez_compressed(path, allow_pickle=False, **arrays)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def read_about(path: Path) -> dict[str, Any]:
    """What ``save_driver`` was told about a driver."""
    arrays = _read(path)
    return json.loads(str(arrays["about"])) if "about" in arrays else {}


def load_driver(path: Path | io.BytesIO, driver: CreditDriver) -> None:
    """Brings a driver of the same kind to the saved state; checks before it changes anything.

    Where it has room for fewer episodes, some of the older ones are left out.
    """
    arrays = _read(path)
    _check_header(path, json.loads(str(arrays["header"])), _header(driver))
    template = _leaves(driver)
    names = {f"state{name}": name for name in template}
    for name in sorted(names.keys() | {name for name in arrays if name.startswith("state")}):
        there = str(arrays[name].shape) if name in arrays else "missing"
        here = str(template[names[name]].shape) if name in names else "missing"
        if there != here:
            raise RunError(
                f"{path} belongs to another model: {name} is {there} in the file and {here} here; "
                "make the wrapper with the method and the encoder that it was saved with."
            )

    def loaded(tree_path: Any, leaf: Any) -> Any:
        name = f"state{jax.tree_util.keystr(tree_path)}"
        return jnp.array(arrays[name]) if name in names else leaf

    length, rng = arrays["length"], np.random.default_rng(int(arrays["seed"]))
    driver.make_room(int(length.max(initial=0)), rng)
    here = driver.buffer
    there = EpisodeBuffer(here.spec, len(length), here.fields, here.max_steps)
    for name, array in there.arrays.items():
        array[_held(array, length, name)] = arrays[f"buffer/{name}"]
    there.restore(there.arrays | {name: arrays[name] for name in OF_EPISODES})
    there.resize(here.max_steps, here.slots, rng)
    driver.seed = int(arrays["seed"])
    driver.restore(
        {
            "state": jax.tree_util.tree_map_with_path(loaded, driver.state),
            "updates": int(arrays["updates"]),
            "updates_owed": float(arrays["updates_owed"]),
            "buffer": there.snapshot(),
        }
    )


def _held(array: np.ndarray, length: np.ndarray, name: str) -> np.ndarray:
    """Where a buffer's array holds anything: one more state than steps."""
    return (
        np.arange(array.shape[1])[None] < (length + (length > 0) * (name == "observation"))[:, None]
    )


def _leaves(driver: CreditDriver) -> dict[str, Any]:
    return {
        jax.tree_util.keystr(path): leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(driver.state)
        if isinstance(leaf, jax.Array)
    }


def _header(driver: CreditDriver) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": importlib.metadata.version("synthetic-returns"),
        "method": driver.method.name,
        "observation_shape": list(driver.spec.observation_shape),
        "observation_dtype": str(np.dtype(driver.spec.observation_dtype)),
        "stride": driver.view.stride,
    }


def _read(path: Path | io.BytesIO) -> dict[str, np.ndarray]:
    if isinstance(path, Path) and not path.exists():
        raise FileNotFoundError(f"there is no file {path}: check the path, or save first")
    try:
        opened = path.open("rb") if isinstance(path, Path) else path
        with opened as file, np.load(file, allow_pickle=False) as archive:
            arrays = dict(archive)
            json.loads(str(arrays["header"]))
            return arrays
    except (OSError, ValueError, LookupError, EOFError, zipfile.BadZipFile) as error:
        raise RunError(
            f"{path} is damaged, or was not written by a wrapper's save ({error}): use another file"
        ) from error


def _check_header(path: Any, there: dict[str, Any], here: dict[str, Any]) -> None:
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
