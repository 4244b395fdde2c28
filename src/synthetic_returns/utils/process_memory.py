"""How much memory there is, and how much of it this process holds and held at most."""

import os
from pathlib import Path

__all__ = ["machine_bytes", "peak_mb", "resident_mb"]

# Linux; there is no portable way without another package.
_STATM = Path("/proc/self/statm")
_STATUS = Path("/proc/self/status")
_ASSUMED = 16 << 30  # bytes of a machine that does not say


def resident_mb() -> float:
    """Megabytes of this process that are in memory now; NaN where the system does not say."""
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[1])
    except OSError:
        return float("nan")
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def peak_mb() -> float:
    """The most megabytes of this process that were in memory; NaN where the system does not say.

    Not ``getrusage``: what that says begins with the memory of the process that started this one.
    """
    try:
        facts = dict(
            line.split(":", 1) for line in _STATUS.read_text(encoding="utf-8").splitlines()
        )
        return int(facts["VmHWM"].removesuffix("kB")) * 1024 / 1e6
    except (OSError, KeyError):
        return float("nan")


def machine_bytes() -> int:
    """Memory of this machine; a guess where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf, macOS not these names
        return _ASSUMED
