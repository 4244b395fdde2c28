"""The time that a run takes."""

import time

__all__ = ["WallClock"]


class WallClock:
    """In total over all sessions of a run, and since certain events."""

    def __init__(self, spent: float):
        """Goes on after this number of seconds."""
        self._start = time.monotonic() - spent
        self._marks: dict[str, float] = {}
        self.restart("checkpoint")
        self.restart("lap")

    def total(self) -> float:
        """Seconds of all sessions."""
        return time.monotonic() - self._start

    def restart(self, name: str) -> None:
        """The event happens now."""
        self._marks[name] = time.monotonic()

    def since(self, name: str) -> float:
        """Seconds since the event."""
        return time.monotonic() - self._marks[name]

    def lap(self) -> float:
        """Seconds since the last lap."""
        elapsed = self.since("lap")
        self.restart("lap")
        return elapsed
