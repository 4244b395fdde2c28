"""No credit: the baseline that every method is compared with."""

import dataclasses
from typing import ClassVar

from synthetic_returns.credit.method import Gives, Need

__all__ = ["NoCredit"]


@dataclasses.dataclass(frozen=True)
class NoCredit:
    """The agent learns from the environment's rewards alone: the baseline of every comparison."""

    name: ClassVar[str] = "none"
    summary: ClassVar[str] = "the environment's rewards alone"
    reference: ClassVar[str] = ""
    needs: ClassVar[frozenset[Need]] = frozenset()
    gives: ClassVar[Gives] = Gives.NOTHING
