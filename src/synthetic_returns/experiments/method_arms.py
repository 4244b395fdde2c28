"""Credit methods as arms: the same agent with each of them, and a colour for each."""

from synthetic_returns.credit.method import Gives
from synthetic_returns.credit.registry import find_method, method_names
from synthetic_returns.experiments.experiment import Arm

__all__ = ["ADVANCE", "ORACLE", "arm_number", "method_arm"]

# What a preset sets for its own method does not count: all rewards are paid in full.
WHOLE_REWARD = ("--reward.beta", "1.0")

# The first arms of every report are orange and blue: with synthetic returns and without.
FIRST = ("advance", "none", "episodic", "rudder", "paper", "oracle")
COLOURS = (
    *("#e8710a", "#1f77b4", "#7a2fb0", "#1b7f3b", "#c0271a", "#555555"),
    *("#0f8b8d", "#b8860b", "#d6338a", "#7a5230", "#5b6ee1", "#6b8e23"),
    *("#9b2d5e", "#2b4c7e", "#e0a100", "#3aa6c9"),
)


def arm_number(method: str) -> int:
    """The place of a method in the order of colours; the same in all pictures."""
    order = [*FIRST, *(name for name in method_names() if name not in FIRST)]
    return order.index(method)


def method_arm(method: str, *, preset: str = "fast", tuned: bool = False) -> Arm:
    """The agent of a preset with a credit method.

    Args:
      method: name of the method.
      preset: whose agent it is.
      tuned: whether the preset was made for this method, and says how it is set and paid.
    """
    # Only credit that is a reward is mixed with rewards; beside any other they are whole anyway.
    mixed = find_method(method).gives is Gives.REWARD
    whole = WHOLE_REWARD if mixed and not tuned else ()
    colour = COLOURS[arm_number(method) % len(COLOURS)]
    return Arm(method, method, colour, ("--credit", method, *whole), preset)


ADVANCE = method_arm("advance")
ORACLE = method_arm("oracle")
