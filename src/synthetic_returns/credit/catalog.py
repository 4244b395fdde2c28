"""The list of all credit methods, and what there is to know about each, for the terminal."""

import inspect

from rich.table import Table

from synthetic_returns.credit.method import Assigner, Gives, Need
from synthetic_returns.credit.registry import AnyMethod, find_method, method_names

__all__ = ["describe", "methods_table", "usable_in"]


def usable_in(method: type[AnyMethod]) -> str:
    """Where a method can be used: with our agent only, or in the wrappers too."""
    ours_alone = {Need.LOG_PROBS, Need.VALUES, Need.WHOLE_EPISODES, Need.CONTRIBUTIONS}
    if not issubclass(method, Assigner) or method.gives is not Gives.REWARD:
        return "train"
    return "train" if ours_alone & method.needs else "anywhere"


def methods_table() -> Table:
    """Every method in one line."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("name", "what it does", "paper", "needs", "used in"):
        table.add_column(heading, no_wrap=heading not in ("paper", "needs"))
    for name in method_names():
        method = find_method(name)
        needs = ", ".join(sorted(method.needs)) or "-"
        paper = method.reference.replace(" et al.", "+") or "-"
        table.add_row(name, method.summary, paper, needs, usable_in(method))
    return table


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
