"""Checkpoints of a training state: written whole or not at all, checked when read.

One directory per step. Orbax stores the arrays under readable names; ``manifest.json`` beside them
says which leaves the state had and what the bytes of each file add up to, so that damage and a
foreign state are told apart and named. What a run can do without, a replay, has a file of its own:
damage to it costs nothing else.
"""

import dataclasses
import json
import logging
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from synthetic_returns.training.leaves import (
    declared_on_host,
    describe,
    leaf_name,
    like,
    saved_leaves,
    text_of,
    to_host,
)
from synthetic_returns.training.stored_arrays import open_stored, store_arrays
from synthetic_returns.utils.archives import check_room, open_arrays
from synthetic_returns.utils.checksums import checksum, checksums
from synthetic_returns.utils.files import RunError, sync_directory, write_atomically
from synthetic_returns.utils.moved_leaves import leaves_as_called_now
from synthetic_returns.utils.reading import read_json_object
from synthetic_returns.utils.several import Several

__all__ = ["CheckpointError", "Checkpoints"]

_ARRAYS = "arrays"
_MANIFEST = "manifest.json"
_REPLAY = "replay.npz"
# Directories that are not whole checkpoints; only names that are numbers count as checkpoints.
_SAVING = "saving"
_DISCARDED = "discarded"
_STEP = re.compile("0|[1-9][0-9]{0,17}")


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
        return sorted(
            int(entry.name) for entry in self.path.iterdir() if _STEP.fullmatch(entry.name)
        )

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
        leaves = saved_leaves(tree)
        arrays = {name: to_host(leaf) for name, leaf in leaves.items()}
        for name, array in arrays.items():
            if array.dtype.kind in "OSUMm":
                raise TypeError(
                    f"leaf {name} has dtype {array.dtype}, which a checkpoint cannot hold: "
                    "use numbers of at most 64 bits"
                )
        self._clear_leftovers()
        saving = self.path / _SAVING
        saving.mkdir(parents=True)
        stored = {name: array for name, array in arrays.items() if array.size}
        store_arrays(saving / _ARRAYS, stored)
        manifest = {
            "leaves": {name: describe(leaf) for name, leaf in leaves.items()},
            "files": checksums(saving / _ARRAYS),
        }
        if replay is not None:
            with (saving / _REPLAY).open("wb") as file:
                arrays: dict[str, Any] = {
                    name: to_host(x) for name, x in saved_leaves(replay).items()
                }
                np.savez(file, **arrays)
                os.fsync(file.fileno())
            manifest["replay"] = checksum(saving / _REPLAY)
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
            freshly initialised one, or what ``jax.eval_shape`` says about it; it is not changed.
            Where it has ``Several``, so many of them are read as were saved: none from a checkpoint
            that does not know of them.
          step: which checkpoint; the newest by default.
          part: whether the template may be a part of what was saved, and the rest is left alone.

        Returns:
          The step and the state; jax arrays are on the default device.
        """
        step = self._existing_step(step)
        manifest = self._read_manifest(step)
        template = _resized(template, manifest["leaves"])
        leaves = saved_leaves(template)
        described = leaves_as_called_now(manifest["leaves"], leaves)
        if part:
            described = {name: x for name, x in described.items() if name in leaves}
        self._check_same_structure(step, leaves, described)
        self._check_undamaged(step, manifest["files"])
        arrays = self._read_arrays(step, leaves)

        def restored(path: tuple[Any, ...], leaf: Any) -> Any:
            name = leaf_name(path)
            if name in arrays and name in leaves:
                return like(leaf, arrays[name])
            if isinstance(leaf, jax.ShapeDtypeStruct):  # of no entries: these are not stored
                return jnp.zeros(leaf.shape, leaf.dtype)
            return leaf

        return step, jax.tree_util.tree_map_with_path(restored, template)

    def restore_replay(self, template: Any, step: int) -> Any:
        """Reads a replay back; None if it cannot be read, which a warning says.

        Args:
          template: one with the structure, shapes and types of the saved one.
          step: of the checkpoint.
        """
        path = self._step_path(step) / _REPLAY
        try:
            if checksum(path) != self._read_manifest(step)["replay"]:
                raise ValueError("its bytes have changed")
            with open_arrays(path, "start without it") as archive:
                for name, leaf in saved_leaves(template).items():
                    if (declared := archive.declared(name)) != declared_on_host(leaf):
                        raise ValueError(f"{name} is {declared}")
                leaves = {name: archive.read(name) for name in saved_leaves(template)}
        except (OSError, ValueError, LookupError) as error:
            _log.warning(
                "%s cannot be read (%s): the run goes on without it and gathers new experience "
                "before it learns on; nothing else is lost",
                path,
                error,
            )
            return None
        return jax.tree_util.tree_map_with_path(
            lambda path, leaf: like(leaf, leaves[leaf_name(path)]), template
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
            manifest = read_json_object(self._step_path(step) / _MANIFEST)
        except (OSError, ValueError) as error:
            raise self._damaged(step, f"{_MANIFEST} cannot be read ({error})") from error
        for section in ("leaves", "files"):
            if not isinstance(manifest.get(section), dict):
                raise self._damaged(step, f"{_MANIFEST} has no section {section!r}")
        for name, description in manifest["leaves"].items():
            if not isinstance(description, dict) or not {"dtype", "shape"} <= description.keys():
                raise self._damaged(step, f"{_MANIFEST} does not describe {name!r:.50}")
        return manifest

    def _read_arrays(self, step: int, leaves: dict[str, Any]) -> dict[str, Any]:
        """What Orbax stored, if these are arrays of the right sizes."""
        source = self._step_path(step).absolute()
        try:
            with open_stored(source / _ARRAYS) as stored:
                declared = leaves_as_called_now(stored.declared, leaves)
                check_room(sum(x.nbytes for x in declared.values()), f"checkpoint {source}")
                for name, leaf in leaves.items():
                    wanted = declared_on_host(leaf)
                    if wanted.nbytes and declared.get(name) != wanted:
                        raise self._damaged(step, f"{name} is {declared.get(name, 'missing')}")
                return leaves_as_called_now(stored.read(), leaves)
        except RunError:
            raise
        except Exception as error:  # of Orbax, of its storage, of whatever these stumble over
            what = f"its arrays cannot be read ({type(error).__name__})"
            raise self._damaged(step, what) from error

    def _check_same_structure(
        self, step: int, leaves: dict[str, Any], described: dict[str, dict[str, Any]]
    ) -> None:
        for name in leaves | described:
            here = text_of(describe(leaves[name])) if name in leaves else "no such leaf"
            there = text_of(described[name]) if name in described else "no such leaf"
            if here != there:
                raise CheckpointError(
                    f"checkpoint {self._step_path(step)} belongs to another configuration: leaf "
                    f"{name} is {there} in the checkpoint but {here} in this program; use the "
                    "configuration that the run was started with, or start a new run"
                )

    def _check_undamaged(self, step: int, expected: dict[str, int]) -> None:
        # Done before Orbax looks at the files: it does not see every damage, and is loud about it.
        found = checksums(self._step_path(step) / _ARRAYS)
        for name, one in expected.items():
            if found.get(name) != one:
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


def _resized(template: Any, names: Iterable[str]) -> Any:
    """The template with ``Several`` of each kind as often as they were saved."""

    def resized(path: tuple[Any, ...], node: Any) -> Any:
        if not isinstance(node, Several):
            return node
        before = f"{leaf_name(path)}.items["
        found = {x.removeprefix(before).split("]")[0] for x in names if x.startswith(before)}
        return node.resized(len(found))

    return jax.tree_util.tree_map_with_path(
        resized, template, is_leaf=lambda node: isinstance(node, Several)
    )
