"""What is made once is given to all who ask for the same, and to nobody else."""

import dataclasses

from synthetic_returns.utils.sharing import shared


@dataclasses.dataclass(frozen=True)
class Wanted:
    size: object


@shared
def make(wanted: Wanted, many: bool) -> list[object]:
    return [wanted, many]


def test_equal_arguments_share_what_was_made():
    assert make(Wanted(3), True) is make(Wanted(3), True)
    assert make(Wanted(3), True) is not make(Wanted(4), True)
    assert make(Wanted(3), False) == [Wanted(3), False]


def test_what_cannot_be_hashed_is_made_anew():
    first, second = (make(Wanted([3]), True) for _ in range(2))
    assert first == second
    assert first is not second
