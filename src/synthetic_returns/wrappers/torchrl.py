"""A replay transform for TorchRL; needs the extra ``synthetic-returns[torchrl]``."""

import io
from typing import Any

import numpy as np
from gymnasium import Space, spaces
from typing_extensions import Unpack

try:
    import torch
    from tensordict import TensorDictBase  # pyright: ignore[reportMissingImports]
    from torchrl.data import (  # pyright: ignore[reportMissingImports]
        Bounded,
        Categorical,
        OneHot,
        TensorStorage,
        Unbounded,
    )
    from torchrl.envs import EnvBase, Transform  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise ImportError(
        "TorchRL is not installed; this transform is for it: "
        "pip install 'synthetic-returns[torchrl]'"
    ) from error

from synthetic_returns.credit.saved import load_driver, save_driver
from synthetic_returns.credit.settlement import at_ends
from synthetic_returns.wrappers.credited import TRUE_REWARD, CreditedData
from synthetic_returns.wrappers.pieces import Piece, PieceCredit
from synthetic_returns.wrappers.stream import Settings, StreamCredit

__all__ = ["CreditTransform"]

EPISODE, TIME = ("credit", "episode"), ("credit", "time")  # kept with every transition
TRAJECTORY = ("collector", "traj_ids")


class CreditTransform(CreditedData, Transform):
    """A transform of a replay buffer: stores true rewards and adds current credit to samples.

    ``buffer.append_transform(sr.CreditTransform(env, buffer.storage))``. The credit method learns
    from the data that are written to the buffer. In sampled batches, ``("next", "reward")``
    includes the current credit; ``("next", "true_reward")`` is the environment's reward.
    """

    def __init__(
        self,
        env: EnvBase,
        storage: Any,
        *,
        observation_key: str = "observation",
        action_key: str = "action",
        **settings: Unpack[Settings],
    ):
        """Draws the parameters and reserves the memory.

        Args:
          env: the environment, for its observation and action specs.
          storage: the storage of the buffer; the end of an episode settles the credit of the
            episode's steps that are stored there.
          observation_key: entry of the observations.
          action_key: entry of the actions.
          **settings: those that ``StreamCredit`` describes. ``max_episode_steps`` is the expected
            length of the longest episode, by default 1,000.
        """
        super().__init__()
        if not isinstance(storage, TensorStorage):
            raise ValueError(
                f"the storage is a {type(storage).__name__}; credit looks up the steps of an "
                "episode in it: use LazyTensorStorage or LazyMemmapStorage."
            )
        observation_spec = env.observation_spec_unbatched[observation_key]
        action_spec = env.action_spec_unbatched
        self._one_hot = isinstance(action_spec, OneHot)
        self._keys = observation_key, action_key
        self._storage = storage
        self.credit = StreamCredit(
            _space(observation_spec), _space(action_spec, self._one_hot), 1, **settings
        )
        self._pieces = PieceCredit(self.credit)

    def _inv_call(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Learns from the data written to the buffer; stores each step's place in its episode."""
        if tensordict.ndim != 1:
            raise ValueError(
                f"the data have batch size {list(tensordict.shape)}; credit is given to single "
                "transitions: buffer.extend(data.reshape(-1))."
            )
        states, arrived, actions = self._read(tensordict)
        reward = _numpy(tensordict["next", "reward"]).reshape(-1)
        done = _numpy(tensordict["next", "done"]).reshape(-1)
        terminated = _numpy(tensordict.get(("next", "terminated"), tensordict["next", "done"]))
        trajectory = tensordict.get(TRAJECTORY, None)
        names = np.zeros(len(done), int) if trajectory is None else _numpy(trajectory).reshape(-1)
        axes = tuple(range(1, states.ndim))
        goes_on = ~done[:-1] & (names[1:] == names[:-1])
        goes_on &= np.all(states[1:] == arrived[:-1], axis=axes)
        episode, time = np.zeros(len(done), np.int64), np.zeros(len(done), np.int64)
        for part in np.split(np.arange(len(done)), np.flatnonzero(~goes_on) + 1):
            last = part[-1]
            new = self._pieces.add(
                int(names[last]),
                Piece(
                    states[part],
                    arrived[part],
                    actions[part],
                    reward[part],
                    ended=bool(done[last]),
                    terminated=bool(terminated.reshape(-1)[last]),
                ),
            )
            episode[part], time[part] = new.episode.number, new.time
        tensordict.set(EPISODE, torch.from_numpy(episode))
        tensordict.set(TIME, torch.from_numpy(time))
        return tensordict

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Adds current credit to a sampled batch."""
        reward = tensordict["next", "reward"]
        flat = tensordict.reshape(-1)
        true = _numpy(flat["next", "reward"]).reshape(-1).astype(np.float32)
        ends = _numpy(flat["next", "done"]).reshape(-1)
        credit = np.zeros(len(true), np.float32)
        credit[~ends] = self._earned(flat, np.flatnonzero(~ends))
        advanced = np.zeros(len(true), np.float32)
        if self.credit.driver.method.conserves:
            advanced[ends] = self._advanced(flat, np.flatnonzero(ends))
        credit = at_ends(credit, ends, advanced)
        paid = torch.from_numpy(self.credit.mix.augmented(true, credit, ends))
        tensordict.set(("next", TRUE_REWARD), reward)
        tensordict.set(("next", "reward"), paid.reshape(reward.shape).to(reward))
        return tensordict

    def _advanced(self, flat: TensorDictBase, rows: np.ndarray) -> np.ndarray:
        """What episodes were paid before their ends, by the steps that are held."""
        if not len(rows):
            return np.zeros(0, np.float32)
        held: Any = self._storage[:]
        episodes, times = _numpy(held[EPISODE]), _numpy(held[TIME])
        number, time = _numpy(flat[EPISODE])[rows], _numpy(flat[TIME])[rows]
        before = [
            np.flatnonzero((episodes == n) & (times < t)) for n, t in zip(number, time, strict=True)
        ]
        places = np.repeat(np.arange(len(rows)), [len(x) for x in before])
        earned = self._earned(held, np.concatenate(before))
        return np.bincount(places, earned, len(rows))

    def _earned(self, data: TensorDictBase, rows: np.ndarray) -> np.ndarray:
        """What transitions that do not end their episodes earn now."""
        some = data[torch.from_numpy(rows)]
        return self._pieces.earned(*self._read(some), _numpy(some[TIME]))

    def _read(self, data: TensorDictBase) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Source states, destination states and actions."""
        observation_key, action_key = self._keys
        action = data[action_key]
        action = action.long().argmax(-1) if self._one_hot else action
        states = data[observation_key], data["next", observation_key]
        return _numpy(states[0]), _numpy(states[1]), _numpy(action)

    def set_container(self, container: Any) -> None:
        """Refuses environments: what a step is paid is for the replay buffer to know."""
        if isinstance(container, EnvBase):
            raise ValueError(
                "CreditTransform belongs to a replay buffer, which pays what is known when a batch "
                "is sampled: buffer.append_transform(sr.CreditTransform(env, buffer.storage))."
            )
        super().set_container(container)

    def get_extra_state(self) -> dict[str, Any]:
        """What was learned, for ``buffer.state_dict()`` and ``buffer.dumps()``."""
        file = io.BytesIO()
        save_driver(file, self.credit.driver)
        archive = torch.from_numpy(np.frombuffer(file.getvalue(), np.uint8).copy())
        return {"archive": archive, "episodes": self._pieces.begun}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Goes on from what was saved; the episodes that run are forgotten."""
        load_driver(io.BytesIO(_numpy(state["archive"]).tobytes()), self.credit.driver)
        self._pieces = PieceCredit(self.credit, begun=int(state["episodes"]))


def _space(spec: Any, one_hot: bool = False) -> Space:
    """A specification of TorchRL as a space of Gymnasium."""
    if isinstance(spec, OneHot) and one_hot:
        return spaces.Discrete(spec.shape[-1])
    if isinstance(spec, Categorical):
        return spaces.Discrete(int(spec.n))
    shape, kind = tuple(spec.shape), torch.empty(0, dtype=spec.dtype).numpy().dtype
    if isinstance(spec, OneHot):
        return spaces.Box(0, 1, shape, kind.type)
    if isinstance(spec, Bounded):
        low, high = (_numpy(x).astype(kind) for x in (spec.space.low, spec.space.high))
        return spaces.Box(low, high, shape, kind.type)
    if isinstance(spec, Unbounded):
        return spaces.Box(-np.inf, np.inf, shape, np.float32)
    raise ValueError(
        f"the specification is {spec}; bounded and unbounded numbers, categories and one-hot "
        "vectors are supported: choose another observation_key, or transform the environment."
    )


def _numpy(x: Any) -> np.ndarray:
    return x.detach().cpu().numpy()
