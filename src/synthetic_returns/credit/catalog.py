"""The list of all credit methods, and what there is to know about each, for the terminal."""

import inspect

from synthetic_returns.credit.method import Assigner, Gives, Need
from synthetic_returns.credit.registry import AnyMethod, find_method, method_names
from synthetic_returns.utils.listing import Listing

__all__ = ["describe", "methods_listing", "usable_in"]


def usable_in(method: type[AnyMethod]) -> str:
    """Where a method can be used: with our agent only, or in the wrappers too."""
    ours_alone = {Need.LOG_PROBS, Need.VALUES, Need.WHOLE_EPISODES, Need.CONTRIBUTIONS}
    if not issubclass(method, Assigner) or method.gives is not Gives.REWARD:
        return "train"
    return "train" if ours_alone & method.needs else "anywhere"


def methods_listing() -> Listing:
    """Every method: what it does, where it comes from, what it needs and where it can be used."""
    rows = []
    for name in method_names():
        method = find_method(name)
        needs = f"; needs {', '.join(sorted(method.needs))}" if method.needs else ""
        summary = f"{method.summary}{needs}"
        rows.append((name, usable_in(method), method.reference or "-", summary))
    return Listing(("name", "used in", "paper", "what it does"), rows, below="what it does")


def describe(method: type[AnyMethod]) -> str:
    """A method in a few lines: what it does, needs and gives, and where it can be used."""
    needs = ", ".join(sorted(method.needs)) or "nothing but observations and rewards"
    facts = {
        "paper": method.reference or "-",
        "needs": needs,
        "gives": str(method.gives),
        "used in": usable_in(method),
    }
    lines = [f"{name + ':':<9} {text}" for name, text in facts.items()]
    return "\n".join(
        [f"{method.name}: {method.summary}", "", *lines, "", inspect.getdoc(method) or ""]
    )
