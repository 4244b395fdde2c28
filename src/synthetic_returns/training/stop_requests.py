"""Requests to stop a run."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["stop_requests"]


@contextmanager
def stop_requests() -> Iterator[list[int]]:
    """Collects Ctrl-C and SIGTERM, so that training stops between two updates, never within one.

    A second signal is not caught.
    """
    requests: list[int] = []
    previous: dict[int, Any] = {}

    def request(number: int, frame: Any) -> None:
        requests.append(number)
        signal.signal(number, previous[number])

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            previous[number] = signal.signal(number, request)
    except ValueError:  # Not in the main thread, which alone may catch signals.
        yield requests
        return
    try:
        yield requests
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
