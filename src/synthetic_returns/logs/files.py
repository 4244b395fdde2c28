"""Files of episodes: NumPy archives, JSON lines and Parquet, one episode in memory at a time."""

import abc
import importlib
import json
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from synthetic_returns.credit.data.episode import Episode
from synthetic_returns.recorded.reading import NAMES, read_episode
from synthetic_returns.utils.archives import ArrayArchive, check_room, open_arrays
from synthetic_returns.utils.files import RunError, replacing
from synthetic_returns.utils.reading import read_lines

__all__ = ["JsonLines", "LogFile", "NumpyArchive", "Parquet"]

BATCH = 64  # rows of Parquet that are read together
NUMBER = 32  # bytes of one in a Python list


class LogFile(abc.ABC):
    """A file of episodes, which can be read as often as one likes."""

    suffixes: ClassVar[tuple[str, ...]]

    def __init__(self, path: Path):
        """Nothing is read yet."""
        self.path = path

    @property
    def name(self) -> str:
        """What the file with its redistributed rewards is called."""
        return self.path.name

    @abc.abstractmethod
    def episodes(self) -> Iterator[dict[str, Any]]:
        """All episodes in order, as mappings of arrays."""

    def read(self) -> Iterator[Episode]:
        """All episodes in order, checked; a message about one names the file."""
        for number, episode in enumerate(self.episodes()):
            yield read_episode(episode, f"episode {number} of {self.path}")

    @abc.abstractmethod
    def write(self, path: Path, rewards: Iterable[np.ndarray], lengths: np.ndarray) -> None:
        """Writes rewards of all episodes in the format of the file, whole or not at all.

        Args:
          path: where to.
          rewards: of each episode, in order.
          lengths: how many steps each of them has.
        """


class NumpyArchive(LogFile):
    """An ``.npz`` in which episodes stand one behind another, and ``lengths`` says how long."""

    suffixes = (".npz",)

    def episodes(self) -> Iterator[dict[str, Any]]:
        """Reads a few rows at a time, also of compressed archives."""
        with open_arrays(self.path, "write it again") as archive:
            yield from self._read(archive)

    def _read(self, archive: ArrayArchive) -> Iterator[dict[str, Any]]:
        found = archive.names
        if "lengths" not in found:
            raise RunError(
                f"{self.path} holds {', '.join(sorted(found))} and no lengths: the episodes stand "
                "one behind another, so say with lengths=[...] how many steps each has"
            )
        lengths = archive.read("lengths")
        if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or np.any(lengths < 1):
            raise RunError(
                f"lengths of {self.path} are {lengths.dtype}{list(lengths.shape)}; they must be "
                "whole numbers of at least 1, one for each episode: write it again"
            )
        names = {known: name for known, all_names in NAMES.items() for name in all_names
                 if name in found}  # fmt: skip
        rows = {known: archive.rows(name) for known, name in names.items()}
        steps, states = int(lengths.sum()), int(lengths.sum()) + len(lengths)
        for known, one in rows.items():
            per_episode = known in ("outcome", "truncated") and one.count == len(lengths)
            allowed = {"observation": (steps, states)}.get(known, (steps,))
            if not per_episode and one.count not in allowed:
                raise RunError(
                    f"{names[known]} of {self.path} has {one.count} rows and lengths say that "
                    f"there are {steps} steps: it must have {' or '.join(map(str, allowed))}, or "
                    "lengths are wrong"
                )
        for length in lengths:
            episode = {}
            for known, one in rows.items():
                if known in ("outcome", "truncated") and one.count == len(lengths):
                    episode[NAMES[known][0]] = one.take(1)[0]
                else:
                    with_terminal = known == "observation" and one.count == states != steps
                    episode[NAMES[known][0]] = one.take(int(length) + with_terminal)
            yield episode

    def write(self, path: Path, rewards: Iterable[np.ndarray], lengths: np.ndarray) -> None:
        """``rewards`` and ``lengths``."""
        with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
            with archive.open("lengths.npy", "w") as member:
                np.lib.format.write_array(member, np.asarray(lengths), allow_pickle=False)
            header = {"descr": "<f8", "fortran_order": False, "shape": (int(sum(lengths)),)}
            with archive.open("rewards.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(member, header)
                for one in rewards:
                    member.write(np.asarray(one, "<f8").tobytes())


class JsonLines(LogFile):
    """One episode on each line."""

    suffixes = (".jsonl", ".ndjson")

    def episodes(self) -> Iterator[dict[str, Any]]:
        """Reads line by line."""
        for number, line in enumerate(read_lines(self.path, "write one episode on each"), 1):
            if not line.strip():
                continue
            try:
                episode = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise RunError(
                    f"line {number} of {self.path} is no JSON ({error}): was it written to the "
                    "end? Each line holds one episode"
                ) from error
            if not isinstance(episode, dict):
                raise RunError(
                    f"line {number} of {self.path} holds a {type(episode).__name__}: each line "
                    'must be one episode, {"observations": [...], "rewards": [...]}'
                )
            yield episode

    def write(self, path: Path, rewards: Iterable[np.ndarray], lengths: np.ndarray) -> None:
        """``{"rewards": [...]}`` on each line."""
        del lengths
        with replacing(path) as file:
            for one in rewards:
                file.write((json.dumps({"rewards": one.tolist()}) + "\n").encode())


class Parquet(LogFile):
    """One episode in each row, its fields in columns of lists; needs ``pyarrow``."""

    suffixes = (".parquet",)

    def episodes(self) -> Iterator[dict[str, Any]]:
        """Reads a few rows at a time."""
        parquet = _pyarrow(self.path)[1]
        try:
            with parquet.ParquetFile(self.path) as file:
                self._check_size(file.metadata)
                known = {name for names in NAMES.values() for name in names}
                columns = [name for name in file.schema_arrow.names if name in known]
                for batch in file.iter_batches(BATCH, columns=columns):
                    yield from batch.to_pylist()
        except RunError:
            raise
        except Exception as error:  # whatever Arrow stumbles over
            raise RunError(
                f"{self.path} is damaged, or no Parquet file ({error}): write it again"
            ) from error

    def _check_size(self, metadata: Any) -> None:
        """Refuses row groups that hold more than memory does: a run of zeros takes a few bytes."""
        for group in range(metadata.num_row_groups):
            row_group = metadata.row_group(group)
            columns = [row_group.column(i) for i in range(row_group.num_columns)]
            size = sum(max(x.num_values * NUMBER, x.total_uncompressed_size) for x in columns)
            check_room(size, f"row group {group} of {self.path}")

    def write(self, path: Path, rewards: Iterable[np.ndarray], lengths: np.ndarray) -> None:
        """A column ``rewards``."""
        del lengths
        arrow, parquet = _pyarrow(path)
        schema = arrow.schema([("rewards", arrow.list_(arrow.float64()))])
        with replacing(path) as file, parquet.ParquetWriter(file, schema) as writer:
            for one in rewards:
                writer.write_table(arrow.table({"rewards": [one.tolist()]}, schema))


def _pyarrow(path: Path) -> tuple[Any, Any]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError(
            f"pyarrow is not installed and {path} is a Parquet file: "
            "pip install 'synthetic-returns[logs]', or write the episodes as .npz or .jsonl"
        ) from error
