"""How all figures look: light, quiet, readable at the width of a README."""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["STYLE", "legend_below", "new_figure", "save", "steps_axis"]

STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}
WIDTH = 8.5  # inches


def new_figure(height: float) -> Figure:
    """An empty figure of the usual width."""
    return Figure(figsize=(WIDTH, height), layout="constrained")


def steps_axis(ax: Axes) -> None:
    """Labels the axis of training in millions of steps."""
    ax.set_xlabel("environment steps (million)")
    ax.xaxis.set_major_formatter(lambda x, _: f"{x / 1e6:g}")


def legend_below(figure: Figure, *, columns: int) -> None:
    """One legend for all panels, under them."""
    handles = {
        label: handle
        for ax in figure.axes
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=columns)


def save(figure: Figure, path: Path) -> Path:
    """Writes a PNG file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)
    return path
