"""What is made once for all who ask for the same."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["shared"]

REMEMBERED = 16

Given = ParamSpec("Given")
Made = TypeVar("Made")


def shared(make: Callable[Given, Made]) -> Callable[Given, Made]:
    """Remembers what a function has made last, by its arguments.

    Compiled functions are made so: to train, play or evaluate once more with the same settings
    compiles nothing. For arguments that cannot be hashed, as those of a user's own task may be,
    everything is made anew.
    """
    remembered = functools.lru_cache(maxsize=REMEMBERED)(make)

    @functools.wraps(make)
    def made(*args: Given.args, **kwargs: Given.kwargs) -> Made:
        try:
            hash((args, tuple(kwargs.items())))
        except TypeError:
            return make(*args, **kwargs)
        return remembered(*args, **kwargs)  # pyright: ignore[reportArgumentType]

    return made
