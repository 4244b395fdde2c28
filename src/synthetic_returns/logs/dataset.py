"""A dataset of episodes: a file, a folder of files, or one of Minari's."""

import importlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from synthetic_returns.logs.files import JsonLines, LogFile, NumpyArchive, Parquet
from synthetic_returns.utils.files import RunError

__all__ = ["MinariLog", "find_logs"]

KINDS: tuple[type[LogFile], ...] = (NumpyArchive, JsonLines, Parquet)


def find_logs(data: str | Path) -> Sequence[LogFile]:
    """The files of episodes at a path; Minari's datasets by folder or id.

    Args:
      data: a path, or the id of a dataset that Minari has downloaded.
    """
    path = Path(data)
    if path.is_dir():
        if (path / "data").is_dir():  # as Minari lays its datasets out
            return [MinariLog(str(data), path)]
        logs = [log for one in sorted(path.iterdir()) if (log := _log(one)) is not None]
        if logs:
            return logs
        raise RunError(f"there is no file of episodes in {path}: it must hold {_endings()} files")
    if path.is_file():
        log = _log(path)
        if log is None:
            raise RunError(f"{path} is no file of episodes: its name must end in {_endings()}")
        return [log]
    if len(path.parts) > 1 and not path.is_absolute() and path.suffix == "":
        return [MinariLog(str(data), None)]
    raise RunError(
        f"there is no {path}: name a file of episodes ({_endings()}), a folder of them, or the id "
        "of a Minari dataset, such as D4RL/door/human-v2"
    )


class MinariLog(LogFile):
    """A dataset of Minari's, read with its library."""

    suffixes = ()

    def __init__(self, data: str, folder: Path | None):
        """Nothing is read yet.

        Args:
          data: what the user called it.
          folder: where it is; None for a dataset that Minari knows by its id.
        """
        super().__init__(Path(data))
        self._id, self._folder = data, folder

    @property
    def name(self) -> str:
        """Of the archive that its redistributed rewards are written to."""
        return f"{self._id.strip('/').replace('/', '-')}.npz"

    def episodes(self) -> Iterator[dict[str, Any]]:
        """Reads episode by episode."""
        for episode in self._open().iterate_episodes():
            yield {
                "observations": episode.observations,
                "actions": episode.actions,
                "rewards": episode.rewards,
                "truncations": episode.truncations,
            }

    def write(self, path: Path, rewards: Iterable[np.ndarray], lengths: np.ndarray) -> None:
        """As a NumPy archive: Minari's own format can only be written with the environment."""
        NumpyArchive(path).write(path, rewards, lengths)

    def _open(self) -> Any:
        try:
            minari = importlib.import_module("minari")
        except ImportError as error:
            raise ImportError(
                f"minari is not installed and {self._id} is one of its datasets, or no path: "
                "pip install 'synthetic-returns[minari]', or check the path"
            ) from error
        try:
            if self._folder is not None:
                return minari.MinariDataset(self._folder / "data")
            return minari.load_dataset(self._id)
        except (FileNotFoundError, ValueError) as error:
            raise RunError(
                f"Minari cannot open {self._id} ({error}): download it with "
                f"`minari download {self._id}`, or check the path"
            ) from error


def _log(path: Path) -> LogFile | None:
    for kind in KINDS:
        if path.suffix in kind.suffixes and not path.name.startswith("."):
            return kind(path)
    return None


def _endings() -> str:
    return ", ".join(ending for kind in KINDS for ending in kind.suffixes)
