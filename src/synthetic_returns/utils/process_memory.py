"""How much memory there is, and how much of it this process holds."""

import os
from pathlib import Path

__all__ = ["machine_bytes", "resident_mb"]

_STATM = Path("/proc/self/statm")  # Linux; there is no portable way without another package
_ASSUMED = 16 << 30  # bytes of a machine that does not say


def resident_mb() -> float:
    """Megabytes of this process that are in memory now; NaN where the system does not say."""
    try:
        pages = int(_STATM.read_text().split()[1])
    except OSError:
        return float("nan")
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def machine_bytes() -> int:
    """Memory of this machine; a guess where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf, macOS not these names
        return _ASSUMED
