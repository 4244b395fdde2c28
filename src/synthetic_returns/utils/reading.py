"""Text that somebody else may have written: read within bounds, refused by the name of its file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from synthetic_returns.utils.files import RunError

__all__ = ["read_json", "read_json_object", "read_lines", "read_text"]

LARGEST_TEXT = 1 << 28  # bytes; a sparse file of a terabyte takes no room on a disk, but in memory


def read_text(path: Path, remedy: str) -> str:
    """The content of a file, if it is text of a reasonable size.

    Args:
      path: the file.
      remedy: what to do if it cannot be read, for the message.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}: check the path, or {remedy}")
    if not path.is_file():  # a folder, a device that never ends, a pipe
        raise RunError(f"{path} is not a file: {remedy}")
    if (size := path.stat().st_size) > LARGEST_TEXT:
        raise RunError(
            f"{path} has {size / 1e6:,.0f} MB and text may have {LARGEST_TEXT / 1e6:,.0f} MB: "
            f"{remedy}"
        )
    try:
        # Line ends stay as they are: those within a cell of a table belong to it.
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise RunError(f"{path} is not text in UTF-8 ({error}): {remedy}") from error


def read_lines(path: Path, remedy: str) -> Iterator[bytes]:
    """The lines of a file, one at a time, if they are of a reasonable size.

    Args:
      path: the file.
      remedy: what to do if it cannot be read, for the message.
    """
    if not path.is_file():
        raise RunError(f"{path} is not a file: {remedy}")
    with path.open("rb") as file:
        while line := file.readline(LARGEST_TEXT + 1):
            if len(line) > LARGEST_TEXT:
                raise RunError(
                    f"{path} has a line of more than {LARGEST_TEXT / 1e6:,.0f} MB: {remedy}"
                )
            yield line


def read_json(path: Path, remedy: str = "restore the file, or start a new run") -> Any:
    """What a JSON file holds.

    Args:
      path: the file.
      remedy: what to do if it cannot be read, for the message.
    """
    text = read_text(path, remedy)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # the latter of a thousand brackets
        raise RunError(f"{path} is damaged or half-written ({error}): {remedy}") from error


def read_json_object(
    path: Path, remedy: str = "restore the file, or start a new run"
) -> dict[str, Any]:
    """What a JSON file holds, if that is an object."""
    document = read_json(path, remedy)
    if not isinstance(document, dict):
        raise RunError(f"{path} holds a {type(document).__name__} but it must be a JSON object")
    return document
