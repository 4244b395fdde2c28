"""Refusals of bad task parameters: each names the value, the rule and the remedy."""

from typing import Any

__all__ = ["require", "require_at_least"]


def require(allowed: bool, message: str) -> None:
    """Raises a ValueError with this message unless the parameters are allowed."""
    if not allowed:
        raise ValueError(message)


def require_at_least(minimum: int, **parameters: Any) -> None:
    """Refuses the first parameter that is not a whole number of at least the minimum."""
    for name, value in parameters.items():
        whole = isinstance(value, int) and not isinstance(value, bool)
        require(
            whole and value >= minimum,
            f"{name}={value!r} is not allowed: use a whole number of at least {minimum}.",
        )
