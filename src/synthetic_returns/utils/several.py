"""Lists of any length in a state that is saved."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Generic, TypeVar

import jax

__all__ = ["Several"]

Item = TypeVar("Item")


@functools.partial(jax.tree_util.register_dataclass, data_fields=["items"], meta_fields=["example"])
@dataclasses.dataclass(frozen=True, eq=False)
class Several(Generic[Item]):
    """Items of one kind, as many as there happen to be.

    Attributes:
      items: in their order.
      example: makes one with the structure, shapes and types of any of them: what is read back
        from a file may be more, or fewer, than there are now.
    """

    items: list[Item]
    example: Callable[[], Item]

    def resized(self, number: int) -> "Several[Item]":
        """The same with this many examples as items."""
        return Several([self.example() for _ in range(number)], self.example)
