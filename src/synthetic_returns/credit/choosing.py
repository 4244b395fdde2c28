"""The method for a wrapper, if it can pay rewards to any agent."""

from synthetic_returns.credit.method import Assigner, Gives, Need
from synthetic_returns.credit.registry import AnyMethod, find_method

__all__ = ["check_single_transitions", "rewarding_method"]


def rewarding_method(
    chosen: Assigner | str, *, user: str = "a wrapper", whole_episodes: bool = False
) -> Assigner:
    """The method, if it gives rewards and needs nothing that only an agent or a task of ours has.

    Args:
      chosen: the method, or its name.
      user: who wants to use it, for the message.
      whole_episodes: whether episodes are complete when credit is asked for.
    """
    method: AnyMethod = find_method(chosen)() if isinstance(chosen, str) else chosen
    if method.gives is not Gives.REWARD:
        raise ValueError(
            f"the credit method {method.name!r} gives {method.gives}; {user} can change "
            "rewards only: choose a method that gives rewards."
        )
    if not isinstance(method, Assigner):
        raise ValueError(
            f"the credit method {method.name!r} is trained with the agent, "
            f"which {user} does not see: choose one that learns from episodes, such as "
            "'advance'."
        )
    if Need.CONTRIBUTIONS in method.needs:
        raise ValueError(
            f"the credit method {method.name!r} pays the true contributions of steps, which no "
            "Gymnasium environment tells: train with `synthetic-returns train TASK --credit "
            f"{method.name}` on a task written in JAX, or choose a method that learns from "
            "episodes, such as 'advance'."
        )
    if Need.WHOLE_EPISODES in method.needs and not whole_episodes:
        raise ValueError(
            f"the credit method {method.name!r} needs complete episodes; {user} has to pay at "
            "every step: choose a method that gives credit as steps arrive."
        )
    return method


def check_single_transitions(method: Assigner) -> None:
    """Refuses a method that cannot credit a transition without the episode that it is of."""
    if type(method).resume is Assigner.resume:
        raise ValueError(
            f"the credit that {method.name!r} gives a transition depends on all of its episode "
            "so far, which a sampled batch does not have: choose a method that credits "
            "transitions one by one, such as 'advance' or 'episodic'."
        )
