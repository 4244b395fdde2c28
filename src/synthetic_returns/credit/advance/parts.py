"""The choices of the method of advances that an ablation can leave out."""

from collections.abc import Iterable
from typing import Literal, get_args

__all__ = ["PARTS", "Part", "check_parts"]

Part = Literal[
    "u",
    "forecast",
    "ending",
    "usual",
    "trust",
    "calibration",
    "stakes",
    "averaging",
    "certainty",
    "decay",
    "clipping",
    "share",
]
"""``u``: contributions of actions. ``forecast``: gains of what b is going to explain. ``ending``: c
also gets credit for rewards that an early end prevents. ``usual``: b and the forecast learn only
what tells episodes of one age apart. ``trust``: is always 1. ``calibration``: trust above 1.
``stakes``: episodes count for the trust by how much there was to predict. ``averaging``: of the
model that pays. ``certainty``: all points of an episode count alike for c. ``decay``: of the
weights. ``clipping``: of unusual gradients. ``share``: of what usually comes at the end."""

PARTS: tuple[Part, ...] = get_args(Part)


def check_parts(names: Iterable[str]) -> None:
    """Refuses names that are no parts."""
    for name in names:
        if name not in PARTS:
            raise ValueError(
                f"without names {name!r}, which is no part of advance; "
                f"there are {', '.join(PARTS)}."
            )
