"""The paper's method: state-associative learning on unrolls, in the agent's own update."""

import dataclasses
from typing import ClassVar, Literal

from synthetic_returns.credit.auxiliary import AuxiliaryMethod

__all__ = ["Paper"]


@dataclasses.dataclass(frozen=True)
class Paper(AuxiliaryMethod):
    """Eq. (basic_arch) with an episodic memory of the agent's features."""

    name: ClassVar[str] = "paper"
    summary: ClassVar[str] = "c, g and b on the agent's features, trained in its own update"
    reference: ClassVar[str] = "Raposo et al. 2021"

    cost: float = 1.0
    """Weight of the state-associative loss."""
    two_stage: bool = False
    """Fit b first and the memory to what b leaves."""
    capacity: int | None = None
    """States that the episodic memory holds; by default the longest episode fits."""
    current: Literal["features", "core"] = "features"
    """What g and b see of the current state: the torso's features or the recurrent core's
    output."""
    sizes: tuple[int, ...] = (256, 256)
    """Hidden units of c and b; g has the first of these layers."""

    init = start = learn = remember = explain = of_states = None  # type: ignore  # on their way
