"""The cores of this machine that are ours; only Linux lets a process choose among them."""

import os

__all__ = ["pin", "usable_cores"]


def usable_cores() -> list[int]:
    """Numbers of the cores that this process may run on.

    Where the system does not say which they are, they are counted from 0.
    """
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    count = getattr(os, "process_cpu_count", os.cpu_count)()
    return list(range(count or 1))


def pin(pid: int, *cores: int) -> None:
    """Keeps a process on some cores; where that is not possible, the system goes on choosing."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(pid, cores)
