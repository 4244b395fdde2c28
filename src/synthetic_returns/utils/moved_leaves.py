"""What saved arrays of earlier versions are called now."""

import re
from collections.abc import Container, Mapping
from typing import TypeVar

__all__ = ["leaves_as_called_now"]

T = TypeVar("T")

# Models took the differences of frames themselves, in a layer around their encoder.
_AROUND_ENCODER = re.compile(r"\.encoder(?=\.(torso|scale)\b)")


def leaves_as_called_now(found: Mapping[str, T], wanted: Container[str]) -> dict[str, T]:
    """What was saved, by the names of its leaves; those that moved get the name that is wanted."""
    moved = {name: _AROUND_ENCODER.sub("", name) for name in found}
    return {
        moved[name] if name not in wanted and moved[name] in wanted else name: x
        for name, x in found.items()
    }
