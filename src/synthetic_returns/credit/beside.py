"""Work that is done beside the caller, one piece at a time."""

import concurrent.futures
from collections.abc import Callable

__all__ = ["Beside"]


class Beside:
    """A thread that does one piece of work while its owner does other things.

    What is computed in a thread of its own is not queued behind what others compute: JAX keeps the
    order of each thread.
    """

    def __init__(self) -> None:
        """Nothing is being done."""
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "synthetic-returns")
        self._work: concurrent.futures.Future[None] | None = None

    def do(self, work: Callable[[], None]) -> None:
        """Starts a piece of work, after the one before."""
        self.finish()
        self._work = self._thread.submit(work)

    def finish(self) -> None:
        """Waits until nothing is being done; raises what went wrong."""
        work, self._work = self._work, None
        if work is not None:
            work.result()
