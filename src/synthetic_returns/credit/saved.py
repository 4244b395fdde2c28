"""What a driver knows, as one file.

A NumPy archive: a header that describes the method and its episodes, the leaves of its state under
their names, the episodes of its buffer, and those that wait to be learned from, one after another
and without the padding.
"""

import dataclasses
import importlib.metadata
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.credit.data.buffer import OF_EPISODES, EpisodeBuffer
from synthetic_returns.credit.data.packing import flaw, packed, unpack
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.method import Assigner
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.utils.archives import Declared, check_room, read_arrays
from synthetic_returns.utils.files import RunError, replacing
from synthetic_returns.utils.moved_leaves import leaves_as_called_now
from synthetic_returns.utils.several import Several

__all__ = ["check_saved", "load_driver", "read_about", "save_driver"]

FORMAT = 3
_LARGEST = 2**31  # number of anything

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
    arrays = {f"state{name}": np.asarray(x) for name, x in _leaves(driver.state).items()}
    arrays |= {
        "header": np.array(json.dumps(_header(driver))),
        "about": np.array(json.dumps(about or {})),
        "updates": np.array(driver.updates),
        "updates_owed": np.array(driver.updates_owed),
        "seed": np.array(driver.seed),
    } | {name: getattr(buffer, name) for name in OF_EPISODES}
    arrays |= packed("buffer", buffer.arrays, buffer.length)
    waiting = driver.waiting.snapshot().items
    if waiting:
        stacked = {name: np.stack([item[name] for item in waiting]) for name in waiting[0]}
        arrays["waiting/length"] = length = stacked.pop("length")
        arrays |= packed("waiting", stacked, length)
    if not isinstance(path, Path):
        np.savez_compressed(path, allow_pickle=False, **arrays)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def read_about(path: Path) -> dict[str, Any]:
    """What ``save_driver`` was told about a driver."""
    arrays = _read(path)
    return _read_json(path, arrays, "about") if "about" in arrays else {}


def load_driver(path: Path | io.BytesIO, driver: CreditDriver) -> None:
    """Brings a driver of the same kind to the saved state; checks before it changes anything.

    Where it has room for fewer episodes, some of the older ones are left out.
    """
    arrays = _read(path)
    _check_header(path, _read_json(path, arrays, "header"), _header(driver))
    arrays = _checked_state(path, arrays, _leaves(driver.state))
    _check_counts(path, arrays)
    length, rng = arrays["length"].astype(np.int32), np.random.default_rng(int(arrays["seed"]))
    max_steps = int(length.max(initial=0))
    here = driver.buffer
    size = here.bytes_of(len(length), max(max_steps, here.max_steps))
    check_room(size, f"{len(length):,} episodes of up to {max_steps:,} steps, as in {path},")
    if max_steps > here.max_steps and not driver.can_grow:
        raise _damaged(path, f"an episode of {max_steps:,} steps, longer than {here.max_steps:,}")
    if wrong := flaw("buffer", arrays, here.arrays, length):
        raise _damaged(path, wrong)
    waiting = _waiting(path, arrays, driver)

    def loaded(tree_path: Any, leaf: Any) -> Any:
        name = f"state{jax.tree_util.keystr(tree_path)}"
        return jnp.array(arrays[name]) if isinstance(leaf, jax.Array) else leaf

    driver.make_room(max_steps, rng)
    here = driver.buffer
    there = EpisodeBuffer(here.spec, len(length), here.fields, here.max_steps)
    unpack("buffer", arrays, there.arrays, length)
    counts = {name: arrays[name].astype(np.int64) for name in OF_EPISODES}
    there.restore(there.arrays | counts | {"length": length})
    there.resize(here.max_steps, here.slots, rng)
    driver.seed = int(arrays["seed"])
    driver.restore(
        {
            "state": jax.tree_util.tree_map_with_path(loaded, driver.state),
            "updates": int(arrays["updates"]),
            "updates_owed": float(arrays["updates_owed"]),
            "buffer": there.snapshot(),
            "waiting": waiting,
        }
    )


def check_saved(path: Path, method: Assigner, spec: EpisodeSpec) -> None:
    """Refuses a file of another model than a method would make; no such model is made."""
    state = eqx.filter_eval_shape(lambda key: method.init(spec, key), jax.random.key(0))
    _checked_state(path, _read(path), _leaves(state))


def _checked_state(
    path: Any, arrays: Mapping[str, np.ndarray], template: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """The arrays; refuses those of another model than the one whose leaves are the template."""
    names = {f"state{name}": name for name in template}
    arrays = leaves_as_called_now(arrays, names)
    for name in sorted(names.keys() | {name for name in arrays if name.startswith("state")}):
        there = _kind(arrays[name]) if name in arrays else "missing"
        here = _kind(template[names[name]]) if name in names else "missing"
        if there != here:
            raise RunError(
                f"{path} belongs to another model: {name} is {there} in the file and {here} here; "
                "make the wrapper with the method and the encoder that it was saved with."
            )
    return arrays


def _kind(array: Any) -> str:
    return f"{tuple(array.shape)} of {array.dtype}"


def _check_counts(path: Any, arrays: Mapping[str, np.ndarray]) -> None:
    """Refuses numbers of episodes and updates that cannot be."""
    kinds = {
        "length": (1, "i"), "number": (1, "i"), "seen": (0, "i"), "updates": (0, "i"),
        "updates_owed": (0, "f"), "seed": (0, "i"),
    }  # fmt: skip
    for name, (rank, kind) in kinds.items():
        x = arrays.get(name, np.zeros((), bool))
        possible = x.ndim == rank and x.dtype.kind == kind and np.all((x >= 0) & (x < _LARGEST))
        if not possible:
            raise _damaged(path, f"{name} is {x.dtype}{list(x.shape)}, or out of its range")
    length, number = arrays["length"], arrays["number"]
    held = length > 0
    if len(length) < 2 or len(length) != len(number) or np.any(number[held] >= arrays["seen"]):
        raise _damaged(path, "the numbers of its episodes do not agree")


def _waiting(
    path: Any, arrays: Mapping[str, np.ndarray], driver: CreditDriver
) -> Several[dict[str, np.ndarray]]:
    """The episodes that waited to be learned from; none in files from before these were saved."""
    none = driver.waiting.snapshot().resized(0)
    if "waiting/length" not in arrays:
        return none
    length = arrays["waiting/length"]
    possible = length.ndim == 1 and length.dtype.kind == "i"
    if not possible or not np.all((length > 0) & (length < _LARGEST)):
        raise _damaged(path, "the lengths of the episodes that wait are out of their range")
    max_steps = max(driver.spec.max_steps, int(length.max(initial=0)))
    rows = {
        name: Declared((len(length), max_steps + (name == "observation"), *shape), np.dtype(dtype))
        for name, (shape, dtype) in driver.spec.entries.items()
    }
    size = sum(declared.nbytes for declared in rows.values())
    check_room(size, f"{len(length):,} episodes of up to {max_steps:,} steps that wait in {path}")
    if wrong := flaw("waiting", arrays, rows, length):
        raise _damaged(path, wrong)
    stacked = {name: np.zeros(declared.shape, declared.dtype) for name, declared in rows.items()}
    unpack("waiting", arrays, stacked, length)
    stacked["length"] = length.astype(np.int32)
    items = [{name: x[row] for name, x in stacked.items()} for row in range(len(length))]
    return dataclasses.replace(none, items=items)


def _leaves(state: Any) -> dict[str, Any]:
    return {
        jax.tree_util.keystr(path): leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(state)
        if isinstance(leaf, jax.Array | jax.ShapeDtypeStruct)
    }


def _header(driver: CreditDriver) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": importlib.metadata.version("synthetic-returns"),
        "method": driver.method.name,
        "observation_shape": list(driver.spec.kept_shape),
        "observation_dtype": str(np.dtype(driver.spec.kept_dtype)),
        "stride": driver.view.stride,
    }


def _read(path: Path | io.BytesIO) -> dict[str, np.ndarray]:
    if isinstance(path, Path) and not path.exists():
        raise FileNotFoundError(f"there is no file {path}: check the path, or save first")
    try:
        arrays = read_arrays(path, "use another file")
        if "header" not in arrays:
            raise RunError("it has no header")
    except RunError as error:
        raise _damaged(path, error) from error
    return arrays


def _read_json(path: Any, arrays: Mapping[str, np.ndarray], name: str) -> dict[str, Any]:
    try:
        document = json.loads(str(arrays[name]))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, error) from error
    if not isinstance(document, dict):
        raise _damaged(path, f"its {name} is a {type(document).__name__}")
    return document


def _damaged(path: Any, what: Any) -> RunError:
    return RunError(
        f"{path} is damaged, or was not written by a wrapper's save ({what}): use another file"
    )


def _check_header(path: Any, there: dict[str, Any], here: dict[str, Any]) -> None:
    if there.get("format") != FORMAT:
        raise RunError(
            f"{path} has format {there.get('format')!r} and this version reads format {FORMAT}: "
            f"use the version of synthetic-returns that wrote it ({there.get('version')})"
        )
    for name, remedy in _REMEDIES.items():
        found = there.get(name)
        if found != here[name]:
            raise RunError(
                f"{path} was saved with {name} {found}, and this wrapper has {here[name]}: "
                f"{remedy.format(there=found)}, or start without the file"
            )
