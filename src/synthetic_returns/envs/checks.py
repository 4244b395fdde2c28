"""Refusals of bad task parameters: each names the value, the rule and the remedy."""

__all__ = ["require", "require_at_least"]


def require(allowed: bool, message: str) -> None:
    """Raises a ValueError with this message unless the parameters are allowed."""
    if not allowed:
        raise ValueError(message)


def require_at_least(minimum: int, **parameters: int) -> None:
    """Refuses the first integer parameter that is below the minimum."""
    for name, value in parameters.items():
        require(
            value >= minimum,
            f"{name}={value} is too small: use an integer of at least {minimum}.",
        )
