"""Example episodes and the drift of the credit, shown while a run is training."""

from pathlib import Path

from synthetic_returns.config import Config
from synthetic_returns.training.metrics import MetricsWriter
from synthetic_returns.training.traces import drift, read_traces
from synthetic_returns.viewer.recording import Recording
from synthetic_returns.viewer.trace_picture import draw_trace_picture

__all__ = ["show_traces"]


def show_traces(writer: MetricsWriter, config: Config, run: Path) -> None:
    """Shows the newest traces of a run, and how far the credit moved since the ones before."""
    for player in ("agent", "exploring", "scripted"):
        traces = read_traces(run, player, newest=2)
        if not traces or traces[-1].explanation.credit is None:
            continue
        newest = traces[-1]
        picture = draw_trace_picture(Recording.from_trace(newest, config.task))
        writer.image(newest.step, f"example_episode/{player}", picture)
        if player == "scripted" and len(traces) > 1:
            writer.show(newest.step, {"credit/drift": drift(traces[-2], newest)})
