"""Turns instead of frames: which turns of a support dialogue earned the customer's rating?

    python examples/dialogue.py

A simulated support desk: every turn of a dialogue is one of a few acts, seen only as a noisy
embedding, and at the end the customer gives one rating. The rating is the sum of what the acts are
worth and a good deal of luck, so the exact credit of every turn is known. Credit that was learned
from recorded dialogues is compared with what is usual: every turn gets the outcome (uniform), or
the outcome discounted by the turns that came after it.

``turn_advantages`` makes ``[batch, turns]`` advantages of recorded dialogues, ``to_tokens`` lays
them over the tokens that were written in each turn. That is the shape ``(B, T)`` which TRL's
``GRPOTrainer`` takes as ``inputs["advantages"]``. ``credit_estimator`` is an advantage estimator as
verl's ``register_adv_est`` takes it. Neither library is needed here.
"""

from typing import Any

import numpy as np

import synthetic_returns as sr

ACTS = {  # how likely each is, and what it adds to the rating
    "small talk": (0.30, 0.0),
    "asks back": (0.20, 0.4),
    "right fix": (0.15, 1.0),
    "wrong fix": (0.15, -0.8),
    "apology": (0.15, 0.1),
    "hands over": (0.05, -1.0),
}
SIZE, NOISE, LUCK = 16, 0.3, 0.7  # of embeddings, their noise, and the customer's mood
FEWEST, MOST = 3, 12  # turns
GAMMA = 0.9


def simulate(number: int, seed: int) -> list[dict[str, Any]]:
    """Dialogues: one embedding for each turn and one for the question; a rating at the end."""
    rng = np.random.default_rng(seed)
    meaning = np.random.default_rng(1234).normal(size=(len(ACTS) + 1, SIZE)) / np.sqrt(SIZE)
    chance, worth = np.array(list(ACTS.values())).T
    dialogues = []
    for _ in range(number):
        acts = rng.choice(len(ACTS), rng.integers(FEWEST, MOST + 1), p=chance)
        said = meaning[np.concatenate([[len(ACTS)], acts])]
        dialogues.append(
            {
                "observations": said + NOISE / np.sqrt(SIZE) * rng.normal(size=said.shape),
                "outcome": worth[acts].sum() + LUCK * rng.normal(),
                "exact": worth[acts],
            }
        )
    return dialogues


def recorded(dialogue: dict[str, Any]) -> dict[str, Any]:
    """What credit may see of a dialogue: the embeddings, and the rating with the last turn."""
    rewards = np.zeros(len(dialogue["observations"]) - 1)
    rewards[-1] = dialogue["outcome"]
    return {"observations": dialogue["observations"], "rewards": rewards}


def turn_advantages(
    credit: sr.Credit, dialogues: list[dict[str, Any]]
) -> tuple[np.ndarray, np.ndarray]:
    """What each turn earned, less what turns usually earn; and which turns there are.

    Returns:
      ``[batch, turns]`` advantages, 0 behind the end of a dialogue, and the mask.
    """
    paid = [credit.redistribute(recorded(one)) for one in dialogues]
    turns = np.array([len(one) for one in paid])
    mask = np.arange(turns.max())[None] < turns[:, None]
    advantages = np.zeros(mask.shape)
    advantages[mask] = np.concatenate(paid)
    advantages[mask] -= advantages[mask].mean()
    return advantages, mask


def to_tokens(advantages: np.ndarray, turn_of_token: np.ndarray) -> np.ndarray:
    """Advantages of turns on the tokens written in them, ``[batch, tokens]``.

    Args:
      advantages: ``[batch, turns]``.
      turn_of_token: the turn that each token belongs to; -1 for what the agent did not write.
    """
    laid = np.take_along_axis(advantages, np.maximum(turn_of_token, 0), axis=1)
    return np.where(turn_of_token >= 0, laid, 0.0)


def credit_estimator(
    token_level_rewards: Any, response_mask: Any, index: Any = None, config: Any = None, **_: Any
) -> tuple[Any, Any]:
    """Advantages for verl where rewards are redistributed: what came with a turn is its advantage.

    Args:
      token_level_rewards: ``(bs, response_length)``; each turn's reward on its last token.
      response_mask: ``(bs, response_length)``; 1 for tokens that the agent wrote.
      index: which prompt each response answers; advantages are relative to its group.
      config: not needed.

    Returns:
      Advantages and returns, both ``(bs, response_length)``, of the kind that came in.
    """
    del config
    rewards, mask = (np.asarray(x, np.float64) for x in (token_level_rewards, response_mask))
    to_come = np.flip(np.cumsum(np.flip(rewards * mask, 1), 1), 1)
    # A token is credited with the next reward at or after it: that of its own turn.
    ends = (rewards != 0) & (mask > 0)
    place = np.where(ends, np.arange(rewards.shape[1])[None], rewards.shape[1] - 1)
    place = np.flip(np.minimum.accumulate(np.flip(place, 1), 1), 1)
    own = np.take_along_axis(rewards, place, axis=1)
    groups = np.zeros(len(own), int)
    if index is not None:
        groups = np.unique(np.asarray(index), return_inverse=True)[1]
    advantages = np.zeros_like(own)
    for group in np.unique(groups):
        rows, written = groups == group, mask[groups == group] > 0
        some = own[rows]
        advantages[rows] = np.where(written, some - some[written].mean(), 0)
    return _like(token_level_rewards, advantages), _like(token_level_rewards, to_come * mask)


def _like(given: Any, values: np.ndarray) -> Any:
    """An array of the kind that was given: torch's have ``new_tensor``."""
    return given.new_tensor(values) if hasattr(given, "new_tensor") else values


def compare(episodes: int = 2000, updates: int | None = None, seed: int = 0) -> dict[str, float]:
    """How closely each kind of credit follows the exact one, on dialogues that were not fitted.

    The correlation over all turns but the last of each dialogue, which is paid what is left.
    """
    credit = sr.Credit(updates=updates, seed=seed)
    credit.fit([recorded(one) for one in simulate(episodes, seed)])
    test = simulate(300, seed + 1)
    advantages, mask = turn_advantages(credit, test)
    kinds: dict[str, list[np.ndarray]] = {"learned": [], "uniform": [], "discounted": []}
    exact = []
    for row, dialogue in enumerate(test):
        turns = int(mask[row].sum())
        after = np.arange(turns)[::-1]
        kinds["learned"].append(advantages[row, : turns - 1])
        kinds["uniform"].append(np.full(turns - 1, dialogue["outcome"] / turns))
        kinds["discounted"].append((dialogue["outcome"] * GAMMA**after)[:-1])
        exact.append(dialogue["exact"][:-1])
    truth = np.concatenate(exact)
    return {
        name: float(np.corrcoef(np.concatenate(x), truth)[0, 1]) for name, x in kinds.items()
    } | {"explained": credit.score([recorded(one) for one in test]).explained_variance}


if __name__ == "__main__":
    for name, value in compare().items():
        print(f"{name:<11} {value:.3f}")
