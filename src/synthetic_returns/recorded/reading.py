"""Episodes as other people have them: mappings, tuples or objects of arrays, one or many.

Anything that numpy understands will do, torch's tensors included. What cannot be an episode is
refused with the number of the episode, the field, and what to do.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from synthetic_returns.credit.data.episode import Episode

__all__ = ["NAMES", "find_field", "read_episode", "read_episodes"]

# What each field may be called; Minari's names are among them.
NAMES = {
    "observation": ("observations", "observation", "obs", "states"),
    "reward": ("rewards", "reward"),
    "outcome": ("outcome",),
    "action": ("actions", "action"),
    "truncated": ("truncated", "truncations"),
    "log_probs": ("log_probs",),
    "value": ("values", "value"),
}
LARGEST = float(np.finfo(np.float32).max)
MASKS = ("mask", "masks")
LENGTHS = ("lengths", "length")
SHAPES = "(observations [T + 1, ...] or [T, ...], rewards [T], and actions [T, ...] if known)"


def read_episodes(data: Any) -> Iterator[Episode]:
    """The episodes of a collection, or of one mapping of padded arrays ``[B, T, ...]``."""
    if isinstance(data, Mapping):
        data = _unpadded(data)
    if not isinstance(data, Iterable) or isinstance(data, str):
        raise ValueError(
            f"the episodes are a {type(data).__name__}; give a list of episodes, each a mapping "
            f"of arrays {SHAPES}, or one mapping of padded arrays [B, T, ...] with a mask. For "
            "files, there is the command `synthetic-returns explain`."
        )
    for number, one in enumerate(data):
        yield read_episode(one, f"episode {number}")


def read_episode(data: Any, where: str = "the episode") -> Episode:
    """One episode, its arrays checked against each other.

    Args:
      data: an ``Episode``; a mapping or an object with fields of the names in ``NAMES``; or a tuple
        of observations, rewards and perhaps actions. A single ``outcome`` stands for rewards of
        which only the last is not 0.
      where: what it is called in messages.
    """
    if isinstance(data, Episode):
        fields = {name: getattr(data, name) for name in (*NAMES, "discount") if hasattr(data, name)}
    elif isinstance(data, tuple):
        if len(data) not in (2, 3):
            raise ValueError(f"{where} is a tuple of {len(data)}; it must be {SHAPES}.")
        fields = dict(zip(("observation", "reward", "action"), data, strict=False))
    elif isinstance(data, list | str | np.ndarray):
        raise ValueError(
            f"{where} is a {type(data).__name__}; it must be a mapping or a tuple of arrays "
            f"{SHAPES}."
        )
    else:
        fields = {name: find_field(data, names) for name, names in NAMES.items()}
    arrays = {name: _array(x, name, where) for name, x in fields.items() if x is not None}
    if "observation" not in arrays:
        raise ValueError(
            f"{where} has no observations, only {_keys(data)}; give them the name 'observations'."
        )
    steps = _steps(arrays, where)
    if steps < 1:
        raise ValueError(f"{where} has no step; leave it out.")
    for name, array in arrays.items():
        _check(name, array, steps, where)
    observation = arrays["observation"]
    if len(observation) == steps:  # nobody kept the terminal state: the one before stands in
        observation = np.concatenate([observation, observation[-1:]])
    return Episode(
        observation=observation,
        reward=_rewards(arrays, steps),
        discount=arrays.get("discount", _discount(arrays, steps)),
        action=arrays.get("action"),
        log_probs=arrays.get("log_probs"),
        value=arrays.get("value"),
    )


def find_field(data: Any, names: Iterable[str]) -> Any:
    """A field of a mapping or of an object by any of its names; None if it has none of them."""
    for name in names:
        found = data.get(name) if isinstance(data, Mapping) else getattr(data, name, None)
        if found is not None and not callable(found):
            return found
    return None


def _unpadded(data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The episodes of padded arrays, up to where each of them ends."""
    fields = {name: find_field(data, names) for name, names in NAMES.items()}
    arrays = {
        name: _array(x, name, "the batch of episodes", ragged="pad them and give a mask [B, T]")
        for name, x in fields.items()
        if x is not None
    }
    reward = arrays.get("reward")
    if reward is not None and reward.ndim < 2:
        raise ValueError(
            "this is one episode and a collection was expected; put it in a list: [episode]."
        )
    mask, lengths = find_field(data, MASKS), find_field(data, LENGTHS)
    number = len(next(iter(arrays.values()), ()))
    steps = next((x.shape[1] for name, x in arrays.items() if name in ("reward", "action")), None)
    if lengths is not None:
        ends = np.asarray(lengths, int)
        if ends.shape != (number,) or (steps is not None and np.any(ends > steps)):
            raise ValueError(
                f"lengths are {lengths} and there are {number} episodes, padded to {steps} "
                "steps; give the number of steps of each episode."
            )
    elif mask is not None:
        mask = _array(mask, "mask", "the batch of episodes").astype(bool)
        if mask.shape != (number, mask.shape[-1] if steps is None else steps):
            raise ValueError(
                f"the mask has shape {mask.shape} and there are {number} episodes, padded to "
                f"{steps} steps; it must be [B, T], True where an episode has a step."
            )
        ends = mask.sum(axis=1)
        if np.any(mask != (np.arange(mask.shape[1])[None] < ends[:, None])):
            raise ValueError(
                "the mask has holes; it must be True up to the end of each episode and False "
                "behind it: split episodes that were interrupted."
            )
    elif steps is None:
        raise ValueError(
            "the batch of episodes has neither rewards [B, T] nor a mask; where each episode "
            "has one outcome, a mask or lengths must say where it ends."
        )
    else:
        ends = np.full(len(next(iter(arrays.values()))), steps)
    for row, end in enumerate(ends):
        one = {name: x[row] for name, x in arrays.items()}
        states = len(one["observation"]) if "observation" in one else 0
        has_terminal = steps is not None and states == steps + 1
        kept = {"observation": int(end) + has_terminal}
        yield {
            NAMES[name][0]: x[: kept.get(name, int(end))] if np.ndim(x) else x
            for name, x in one.items()
        }


def _array(x: Any, name: str, where: str, ragged: str = "give every step the same shape") -> Any:
    """An array of numbers, from wherever it is."""
    if isinstance(x, Mapping):
        raise ValueError(
            f"the {name}s of {where} are a mapping of {', '.join(map(str, x))}; they must be one "
            "array: concatenate what credit is to see."
        )
    if hasattr(x, "detach"):  # torch's; it need not be installed
        x = x.detach().cpu()
        x = x.float() if "bfloat16" in str(x.dtype) else x  # which numpy does not have
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise ValueError(
            f"the {name}s of {where} are ragged, their parts have different lengths: {ragged}."
        ) from error
    if array.dtype.kind not in "biuf":
        remedy = f", and if their parts have different lengths, {ragged}" * array.dtype.hasobject
        raise ValueError(
            f"the {name}s of {where} have dtype {array.dtype}; they must be numbers: convert them"
            f"{remedy}."
        )
    if array.dtype.kind == "f" and not np.all(finite := np.abs(array) <= LARGEST):
        at = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(
            f"{name}{list(at) or ''} of {where} is {array[at]}; numbers must be finite: leave the "
            "episode out, and if this is padding, give a mask."
        )
    return array


def _steps(arrays: Mapping[str, np.ndarray], where: str) -> int:
    if "reward" in arrays:
        if "outcome" in arrays:
            raise ValueError(
                f"{where} has both rewards and an outcome; give one of them: the outcome stands "
                "for rewards of which only the last is not 0."
            )
        if arrays["reward"].ndim != 1:
            raise ValueError(
                f"the rewards of {where} have shape {arrays['reward'].shape}; they must be one "
                "number for each step, [T]."
            )
        return len(arrays["reward"])
    if "outcome" not in arrays:
        raise ValueError(
            f"{where} has no outcome: give it 'rewards' [T], or a single number 'outcome' that "
            "its last step pays."
        )
    if arrays["outcome"].size != 1:
        raise ValueError(
            f"the outcome of {where} has shape {arrays['outcome'].shape}; it is one number: use "
            "'rewards' for a number for each step."
        )
    return len(arrays["action"]) if "action" in arrays else len(arrays["observation"])


def _check(name: str, array: np.ndarray, steps: int, where: str) -> None:
    allowed = {"observation": (steps, steps + 1), "outcome": None}.get(name, (steps,))
    if name == "truncated" and array.ndim == 0:
        return
    if allowed is not None and (array.ndim < 1 or len(array) not in allowed):
        raise ValueError(
            f"the {name}s of {where} have shape {array.shape} and it has {steps} steps; the first "
            f"axis must have {' or '.join(map(str, allowed))} entries."
        )


def _rewards(arrays: Mapping[str, np.ndarray], steps: int) -> np.ndarray:
    if "reward" in arrays:
        return arrays["reward"].astype(np.float64)
    reward = np.zeros(steps)
    reward[-1] = float(arrays["outcome"].reshape(()))
    return reward


def _discount(arrays: Mapping[str, np.ndarray], steps: int) -> np.ndarray:
    """An episode that was not cut off has terminated."""
    discount = np.ones(steps, np.float32)
    truncated = np.atleast_1d(arrays.get("truncated", np.zeros(1)))
    discount[-1] = bool(truncated[-1])
    return discount


def _keys(data: Any) -> str:
    names = list(data) if isinstance(data, Mapping) else list(getattr(data, "__dict__", {}))
    return ", ".join(map(str, names)) or "nothing"
