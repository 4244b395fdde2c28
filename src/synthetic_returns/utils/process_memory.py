"""How much memory this process holds."""

import os
from pathlib import Path

__all__ = ["resident_mb"]

_STATM = Path("/proc/self/statm")  # Linux; there is no portable way without another package


def resident_mb() -> float:
    """Megabytes of this process that are in memory now; NaN where the system does not say."""
    try:
        pages = int(_STATM.read_text().split()[1])
    except OSError:
        return float("nan")
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
