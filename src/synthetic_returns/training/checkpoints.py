"""Checkpoints of a training state: written whole or not at all, checked when read.

One directory per step. Orbax stores the arrays under readable names; ``manifest.json`` beside them
says which leaves the state had and what the bytes of each file add up to, so that damage and a
foreign state are told apart and named. What a run can do without, a replay, has a file of its own:
damage to it costs nothing else.
"""

import contextlib
import dataclasses
import json
import logging
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.utils.files import RunError, sync_directory, write_atomically
from synthetic_returns.utils.several import Several

__all__ = ["CheckpointError", "Checkpoints"]

_ARRAYS = "arrays"
_MANIFEST = "manifest.json"
_REPLAY = "replay.npz"
# Directories that are not whole checkpoints; only names that are numbers count as checkpoints.
_SAVING = "saving"
_DISCARDED = "discarded"


_log = logging.getLogger(__name__)


class CheckpointError(RunError):
    """A checkpoint is missing, damaged, or belongs to another configuration."""


@dataclasses.dataclass(frozen=True)
class Checkpoints:
    """The newest few checkpoints of one run.

    A state is any pytree. Its jax and numpy arrays, typed random keys and Python numbers are
    saved; everything else in it (functions, strings) is taken from the template on restoring.

    Attributes:
      path: the directory of all checkpoints; created by the first save.
      keep: how many of the newest to keep.
    """

    path: Path
    keep: int = 3

    def __post_init__(self):
        if self.keep < 1:
            raise ValueError(
                f"keep is {self.keep} but at least one checkpoint has to be kept to resume from"
            )

    def steps(self) -> list[int]:
        """The steps of all whole checkpoints, ascending."""
        if not self.path.is_dir():
            return []
        return sorted(int(entry.name) for entry in self.path.iterdir() if entry.name.isdigit())

    def latest_step(self) -> int | None:
        """The step of the newest checkpoint, if there is one."""
        return max(self.steps(), default=None)

    def save(self, step: int, tree: Any, replay: Any = None) -> None:
        """Saves a state; it can be restored even if the process dies at any later instant.

        Checkpoints of later steps are deleted: they belong to a past that was gone back on.

        Args:
          step: of the run.
          tree: the state.
          replay: the experience that is learned from again, if there is any.
        """
        if step < 0:
            raise ValueError(f"checkpoint step {step} is negative; count steps from 0")
        leaves = _saved_leaves(tree)
        arrays = {name: _to_host(leaf) for name, leaf in leaves.items()}
        for name, array in arrays.items():
            if array.dtype.kind in "OSUMm":
                raise TypeError(
                    f"leaf {name} has dtype {array.dtype}, which a checkpoint cannot hold: "
                    "use numbers of at most 64 bits"
                )
        self._clear_leftovers()
        saving = self.path / _SAVING
        saving.mkdir(parents=True)
        with _orbax() as ocp, contextlib.closing(_checkpointer(ocp)) as checkpointer:
            stored = {name: array for name, array in arrays.items() if array.size}
            checkpointer.save(saving.absolute() / _ARRAYS, args=ocp.args.StandardSave(stored))
        manifest = {
            "leaves": {name: _describe(leaf) for name, leaf in leaves.items()},
            "files": _checksums(saving / _ARRAYS),
        }
        if replay is not None:
            with (saving / _REPLAY).open("wb") as file:
                arrays: dict[str, Any] = {
                    name: _to_host(x) for name, x in _saved_leaves(replay).items()
                }
                np.savez(file, **arrays)
                os.fsync(file.fileno())
            manifest["replay"] = _checksum(saving / _REPLAY)
        write_atomically(saving / _MANIFEST, json.dumps(manifest, indent=1))

        if step in self.steps():
            self._discard(step)
        saving.rename(self._step_path(step))
        sync_directory(self.path)
        earlier = [other for other in self.steps() if other <= step]
        for other in self.steps():
            if other not in earlier[-self.keep :]:
                self._discard(other)

    def restore(
        self, template: Any, step: int | None = None, *, part: bool = False
    ) -> tuple[int, Any]:
        """Reads a state back.

        Args:
          template: a state with the structure, shapes and types of the saved one, for instance a
            freshly initialised one; it is not changed. Where it has ``Several``, so many of them
            are read as were saved: none from a checkpoint that does not know of them.
          step: which checkpoint; the newest by default.
          part: whether the template may be a part of what was saved, and the rest is left alone.

        Returns:
          The step and the state; jax arrays are on the default device.
        """
        step = self._existing_step(step)
        manifest = self._read_manifest(step)
        described = manifest["leaves"]
        template = _resized(template, described)
        leaves = _saved_leaves(template)
        if part:
            described = {name: x for name, x in described.items() if name in leaves}
        self._check_same_structure(step, leaves, described)
        self._check_undamaged(step, manifest["files"])
        with _orbax() as ocp, contextlib.closing(_checkpointer(ocp)) as checkpointer:
            source = self._step_path(step).absolute() / _ARRAYS
            arrays = checkpointer.restore(source, args=ocp.args.StandardRestore())

        def restored(path: tuple[Any, ...], leaf: Any) -> Any:
            name = _name(path)
            return _like(leaf, arrays[name]) if name in arrays and name in leaves else leaf

        return step, jax.tree_util.tree_map_with_path(restored, template)

    def restore_replay(self, template: Any, step: int) -> Any:
        """Reads a replay back; None if it cannot be read, which a warning says.

        Args:
          template: one with the structure, shapes and types of the saved one.
          step: of the checkpoint.
        """
        path = self._step_path(step) / _REPLAY
        try:
            if _checksum(path) != self._read_manifest(step)["replay"]:
                raise ValueError("its bytes have changed")
            with np.load(path, allow_pickle=False) as arrays:
                leaves = {name: arrays[name] for name in _saved_leaves(template)}
            for name, leaf in _saved_leaves(template).items():
                if _describe(leaf) != _describe(leaves[name]):
                    raise ValueError(f"{name} is {_text(_describe(leaves[name]))}")
        except (OSError, ValueError, LookupError, zipfile.BadZipFile) as error:
            _log.warning(
                "%s cannot be read (%s): the run goes on without it and gathers new experience "
                "before it learns on; nothing else is lost",
                path,
                error,
            )
            return None
        return jax.tree_util.tree_map_with_path(
            lambda path, leaf: _like(leaf, leaves[_name(path)]), template
        )

    def _step_path(self, step: int) -> Path:
        return self.path / str(step)

    def _existing_step(self, step: int | None) -> int:
        steps = self.steps()
        if not steps:
            raise CheckpointError(f"there is no checkpoint in {self.path}: start a new run")
        if step is not None and step not in steps:
            raise CheckpointError(f"there is no checkpoint of step {step} in {self.path}: {steps}")
        return steps[-1] if step is None else step

    def _read_manifest(self, step: int) -> dict[str, Any]:
        try:
            manifest = json.loads((self._step_path(step) / _MANIFEST).read_text(encoding="utf-8"))
            return {section: manifest[section] for section in ("leaves", "files")} | manifest
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise self._damaged(step, f"{_MANIFEST} cannot be read ({error})") from error

    def _check_same_structure(
        self, step: int, leaves: dict[str, Any], described: dict[str, dict[str, Any]]
    ) -> None:
        for name in leaves | described:
            here = _text(_describe(leaves[name])) if name in leaves else "no such leaf"
            there = _text(described[name]) if name in described else "no such leaf"
            if here != there:
                raise CheckpointError(
                    f"checkpoint {self._step_path(step)} belongs to another configuration: leaf "
                    f"{name} is {there} in the checkpoint but {here} in this program; use the "
                    "configuration that the run was started with, or start a new run"
                )

    def _check_undamaged(self, step: int, checksums: dict[str, int]) -> None:
        # Done before Orbax looks at the files: it does not see every damage, and is loud about it.
        found = _checksums(self._step_path(step) / _ARRAYS)
        for name, checksum in checksums.items():
            if found.get(name) != checksum:
                what = "has changed" if name in found else "is missing"
                raise self._damaged(step, f"the file {_ARRAYS}/{name} {what}")

    def _damaged(self, step: int, what: str) -> CheckpointError:
        earlier = [other for other in self.steps() if other < step]
        remedy = f"fall back to {self._step_path(earlier[-1])}" if earlier else "start from step 0"
        return CheckpointError(
            f"checkpoint {self._step_path(step)} is damaged: {what}; "
            f"delete this directory to {remedy}"
        )

    def _discard(self, step: int) -> None:
        # Renamed first, so that a half-deleted directory is never taken for a checkpoint.
        discarded = self._step_path(step).rename(self.path / _DISCARDED)
        shutil.rmtree(discarded)

    def _clear_leftovers(self) -> None:
        """Deletes what a killed process left unfinished."""
        for name in (_SAVING, _DISCARDED):
            shutil.rmtree(self.path / name, ignore_errors=True)


def _saved_leaves(tree: Any) -> dict[str, Any]:
    """The leaves that go into a checkpoint, by their path in the tree."""
    kinds = (jax.Array, np.ndarray, np.generic, bool, int, float)
    return {
        _name(path): leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
        if isinstance(leaf, kinds)
    }


def _resized(template: Any, names: Iterable[str]) -> Any:
    """The template with ``Several`` of each kind as often as they were saved."""

    def resized(path: tuple[Any, ...], node: Any) -> Any:
        if not isinstance(node, Several):
            return node
        before = f"{_name(path)}.items["
        found = {x.removeprefix(before).split("]")[0] for x in names if x.startswith(before)}
        return node.resized(len(found))

    return jax.tree_util.tree_map_with_path(
        resized, template, is_leaf=lambda node: isinstance(node, Several)
    )


def _name(path: tuple[Any, ...]) -> str:
    return jax.tree_util.keystr(path)


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _to_host(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _like(template: Any, array: np.ndarray) -> Any:
    """Turns a stored array into the kind of leaf that the template has."""
    if _is_key(template):
        data = jnp.array(array)
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(template))
    if isinstance(template, jax.Array):
        return jnp.array(array)  # a copy that jax owns, so that it can be donated
    if isinstance(template, np.ndarray):
        return np.array(array)
    if isinstance(template, np.generic):
        return array[()]
    return type(template)(array.item())


def _describe(leaf: Any) -> dict[str, Any]:
    dtype = leaf.dtype if hasattr(leaf, "dtype") else type(leaf).__name__
    return {"dtype": str(dtype), "shape": list(np.shape(leaf))}


def _text(description: dict[str, Any]) -> str:
    return f"{description['dtype']}{description['shape']}"


def _checksum(path: Path) -> int:
    """The checksum of a file that may be larger than memory."""
    checksum = 0
    with path.open("rb") as file:
        while part := file.read(2**24):
            checksum = zlib.crc32(part, checksum)
    return checksum


def _checksums(directory: Path) -> dict[str, int]:
    """A checksum of every file in a directory, by its relative path."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): _checksum(path) for path in files}


@contextlib.contextmanager
def _orbax() -> Iterator[Any]:
    """Orbax, imported at first use because that is slow, and silent on the terminal."""
    import orbax.checkpoint as ocp
    from absl import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield ocp
    finally:
        logging.set_verbosity(verbosity)


def _checkpointer(ocp: Any) -> Any:
    return ocp.Checkpointer(ocp.StandardCheckpointHandler())
