"""Compiled programs are kept between commands, so that only the first start of one compiles."""

import os
from collections.abc import MutableMapping
from pathlib import Path

__all__ = ["keep_compiled"]

DIRECTORY = "JAX_COMPILATION_CACHE_DIR"
LARGEST = 1 << 30  # bytes; what was not used for longest goes first


def keep_compiled(environment: MutableMapping[str, str] = os.environ) -> None:
    """Tells JAX, before it is imported, to keep what it compiles in the user's cache directory.

    A directory that the user names in ``JAX_COMPILATION_CACHE_DIR`` is used as they wish;
    ``JAX_ENABLE_COMPILATION_CACHE=0`` switches all of it off.

    Args:
      environment: variables of the process.
    """
    if DIRECTORY in environment:
        return
    caches = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    environment[DIRECTORY] = str(Path(caches) / "synthetic-returns" / "compiled")
    environment.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    environment.setdefault("JAX_COMPILATION_CACHE_MAX_SIZE", str(LARGEST))
