"""Credit in a replay: what is kept is paid again, by the current credit method."""

from collections.abc import Iterator

import numpy as np

from synthetic_returns.agents.replay.replay import SequenceReplay
from synthetic_returns.credit.data.episode import Segment
from synthetic_returns.credit.data.segments import segment_of
from synthetic_returns.credit.driver import CreditDriver

__all__ = ["relabel"]

TOGETHER = 8  # unrolls that are paid in one call


def relabel(replay: SequenceReplay, driver: CreditDriver) -> None:
    """Pays all unrolls of all streams, from the oldest to the newest, as if they arrived now.

    So credit that depends on earlier steps of an episode is right, and a conserving method settles
    exactly the credit that the same method paid. If the beginning of an episode was overwritten,
    its other steps keep the credit from when the episode was last complete.
    """
    for stream in range(len(replay.count)):
        for run in replay.runs(stream):
            _relabel_run(replay, driver, stream, run)


def _relabel_run(replay: SequenceReplay, driver: CreditDriver, stream: int, run: range) -> None:
    """Pays unrolls that follow each other."""
    pieces = [run[start : start + TOGETHER] for start in range(0, len(run), TOGETHER)]
    # Few lengths, so that few are compiled.
    pieces = [p for piece in pieces for p in ([piece] if len(piece) == TOGETHER else _ones(piece))]
    starts: list[np.ndarray] = []

    def segments() -> Iterator[Segment]:
        for piece in pieces:
            trajectory = replay.unrolls(stream, piece[0], len(piece))
            starts.append(np.asarray(trajectory.timestep.first[:-1]))
            yield segment_of(trajectory, driver.view)

    begun = np.zeros(replay.priority.shape[2], bool)
    for piece, credit in zip(pieces, driver.pay_again(segments()), strict=False):
        assert credit.reward is not None  # the configuration sees to it
        reward = np.asarray(credit.reward)
        known = np.logical_or.accumulate([begun, *starts.pop(0)])[1:]
        begun = known[-1]
        for at, number in enumerate(piece):
            rows = slice(at * replay.unroll_length, (at + 1) * replay.unroll_length)
            replay.pay(number, reward[rows], stream, known[rows])


def _ones(piece: range) -> list[range]:
    return [range(number, number + 1) for number in piece]
