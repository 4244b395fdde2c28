"""What a credit method needs, held against what is known about episodes."""

from synthetic_returns.credit.method import Assigner, Need
from synthetic_returns.credit.spec import EpisodeSpec

__all__ = ["check_needs", "known"]


def known(method: Assigner, spec: EpisodeSpec) -> set[Need]:
    """What a method uses, as far as it is known."""
    there = {Need.ACTIONS} if spec.action_dtype is not None else set()
    if spec.has_policy:
        there |= {Need.LOG_PROBS, Need.VALUES}
    return there & method.uses


def check_needs(method: Assigner, spec: EpisodeSpec) -> None:
    """Refuses a method that lacks something here."""
    if Need.EVERY_STATE in method.needs and spec.stride > 1:
        raise ValueError(
            f"the view keeps one state in {spec.stride} and the credit method {method.name!r} "
            "reads every one as it arrives: set the stride to 1 (--view.stride 1), or choose a "
            "method without a recurrence."
        )
    missing = []
    if Need.ACTIONS in method.needs and spec.num_actions is None:
        missing.append("actions that are numbered")
    if {Need.LOG_PROBS, Need.VALUES} & method.needs and not spec.has_policy:
        missing.append("the agent's probabilities and values")
    if Need.CONTRIBUTIONS in method.needs and not spec.has_contributions:
        missing.append("the true contributions of steps")
    if missing:
        raise ValueError(
            f"the credit method {method.name!r} needs {' and '.join(missing)}, which are not known "
            "here: choose a method that does without (synthetic-returns credit lists them)."
        )
