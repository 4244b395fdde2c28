"""How a benchmark reports: one line of JSON on standard output."""

import json
import time


class Stopwatch:
    """Steps per second between the first and the last reading, warm-up left out.

    ``read`` is called with the number of environment steps learned from so far; it returns True
    when enough has been measured.
    """

    def __init__(self, warmup_seconds: float, seconds: float):
        self._warm_at = time.perf_counter() + warmup_seconds
        self._seconds = seconds
        self._start: tuple[float, int] | None = None
        self.steps_per_s = float("nan")

    def read(self, steps: int) -> bool:
        now = time.perf_counter()
        if self._start is None:
            if now >= self._warm_at:
                self._start = now, steps
            return False
        elapsed = now - self._start[0]
        if elapsed < self._seconds:
            return False
        self.steps_per_s = (steps - self._start[1]) / elapsed
        return True


def print_record(name: str, steps_per_s: float) -> None:
    value = round(steps_per_s, 1)
    print(json.dumps({"name": name, "value": value, "unit": "env steps/s"}), flush=True)
