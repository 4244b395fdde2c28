"""Replay that stays true, for Stable-Baselines3: credit is paid when a batch is sampled.

A replay buffer that keeps augmented rewards keeps what the credit method said when a step was made.
These buffers keep the environment's rewards, and pay what the method says now. A transition is
credited by one forward pass; one that ends an episode also needs those before it, to settle. Ends
are as rare as episodes are long, so a batch costs two forward passes on average.
"""

import io
from typing import Any, Generic, TypeVar

import numpy as np
from typing_extensions import Unpack

try:
    from stable_baselines3.common.buffers import (
        DictReplayBuffer,
        NStepReplayBuffer,
        ReplayBuffer,
    )
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
    from stable_baselines3.her.her_replay_buffer import HerReplayBuffer
except ImportError as error:
    raise ImportError(
        "Stable-Baselines3 2.7 or newer is not installed; this buffer is for it: "
        "pip install 'synthetic-returns[sb3]'"
    ) from error

from synthetic_returns.credit.choosing import check_single_transitions
from synthetic_returns.credit.data.episode import Segment
from synthetic_returns.credit.saved import load_driver, save_driver
from synthetic_returns.credit.settlement import at_ends
from synthetic_returns.wrappers.credited import TRUE_REWARD, CreditedData
from synthetic_returns.wrappers.sb3 import time_limit
from synthetic_returns.wrappers.stream import Settings, StreamCredit

__all__ = ["CreditNStepReplayBuffer", "CreditReplayBuffer", "with_credit"]

Algorithm = TypeVar("Algorithm")
Buffer = TypeVar("Buffer", bound=ReplayBuffer)


class _CreditedReplay(CreditedData, Generic[Buffer]):
    """What both buffers add to those of Stable-Baselines3.

    Attributes:
      credit: the credit method at work.
      times: how long the episode of each stored transition had lasted.
    """

    times: np.ndarray
    rewards: Any

    def _set_up(self: Any, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.credit = StreamCredit(
            self.observation_space, self.action_space, self.n_envs, **settings
        )
        check_single_transitions(self.credit.driver.method)
        self.times = np.zeros((self.buffer_size, self.n_envs), np.int32)
        self.rewards = _PaidRewards(self, self.rewards)
        self._lasted = np.zeros(self.n_envs, np.int32)
        self._arrived: np.ndarray | None = None  # where the running episodes are

    def add(
        self: Any,
        obs: np.ndarray,
        next_obs: np.ndarray,
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """Keeps a step of all environments, and learns from the episodes that end in it."""
        # Under the wrapper the reward is augmented already; the true one is beside it.
        reward = np.array(
            [info.get(TRUE_REWARD, r) for info, r in zip(infos, reward, strict=True)], np.float32
        )
        state, arrived = self._seen(obs), self._seen(next_obs)
        # Where an episode does not go on from where it was, it was interrupted by a reset.
        first = self._lasted == 0
        if self._arrived is not None:
            axes = tuple(range(1, state.ndim))
            first |= np.any(state != self._arrived, axis=axes)
        self._lasted[first] = 0
        self.times[self.pos] = self._lasted
        cut_off = np.array([bool(info.get("TimeLimit.truncated", False)) for info in infos])
        ended = np.asarray(done, bool)
        segment = Segment(
            observation=np.stack([state, arrived]),
            first=np.stack([first, np.zeros_like(first)]),
            last=np.stack([np.zeros_like(ended), ended]),
            reward=reward[None],
            discount=np.where(ended & ~cut_off, np.float32(0), np.float32(1))[None],
            action=self._did(action, self.n_envs),
        )
        self.credit.driver.observe(segment)
        self._lasted = np.where(ended, 0, self._lasted + 1)
        self._arrived = arrived
        super().add(obs, next_obs, action, reward, done, infos)  # pyright: ignore

    def paid(self: Any, rows: np.ndarray, envs: np.ndarray | int) -> np.ndarray:
        """The rewards of stored transitions with the credit that the method gives them now."""
        rows, envs = np.broadcast_arrays(rows, envs)
        shape, rows, envs = rows.shape, rows.ravel() % self.buffer_size, envs.ravel()
        true, ends = self.rewards.true[rows, envs], self.dones[rows, envs] > 0
        credit = np.zeros(len(rows), np.float32)
        # What is credited: transitions that go on, and, for those that end an episode, all before.
        steps, places = [rows[~ends]], [np.flatnonzero(~ends)]
        conserves = self.credit.driver.method.conserves
        for place in np.flatnonzero(ends) if conserves else ():
            before = self._before(int(rows[place]), int(envs[place]))
            steps.append(before)
            places.append(np.full(len(before), place))
        step, place = np.concatenate(steps), np.concatenate(places)
        if len(step):
            earned = self._earned(step, envs[place])
            np.add.at(credit, place, earned)  # of ends, what the steps before them were advanced
        credit = at_ends(credit, ends, credit)
        return self.credit.mix.augmented(true, credit, ends).reshape(shape)

    def _earned(self: Any, rows: np.ndarray, envs: np.ndarray) -> np.ndarray:
        """What transitions that do not end their episodes earn now."""
        if self.optimize_memory_usage:
            arrived = self.observations[(rows + 1) % self.buffer_size, envs]
        else:
            arrived = self.next_observations[rows, envs]
        action = self._did(self.actions[rows, envs], len(rows))
        return self.credit.driver.credit_at(
            self._seen(self.observations[rows, envs]),
            self._seen(arrived),
            None if action is None else action[0],
            self.times[rows, envs],
        )

    def _before(self: Any, row: int, env: int) -> np.ndarray:
        """The transitions of an episode before its last; those that were overwritten are gone."""
        oldest = self.pos if self.full else 0
        if self.full and self.optimize_memory_usage:
            oldest += 1  # the newest observation is kept in the place of the oldest
        held = (row - oldest) % self.buffer_size
        steps = min(int(self.times[row, env]), held)
        return (row - 1 - np.arange(steps)) % self.buffer_size

    def _seen(self: Any, observation: np.ndarray) -> np.ndarray:
        number = len(observation)
        return self.credit.kept(observation.reshape(number, *self.observation_space.shape))

    def _did(self: Any, action: np.ndarray, number: int) -> np.ndarray | None:
        """Actions as the method takes them, ``[1, number, ...]``; None where it takes none."""
        spec = self.credit.driver.spec
        if spec.action_dtype is None:
            return None
        return np.asarray(action).reshape(1, number, *spec.action_shape).astype(spec.action_dtype)

    def __getstate__(self: Any) -> dict[str, Any]:
        """What Stable-Baselines3 pickles; the credit model goes along as a NumPy archive."""
        state = {name: x for name, x in vars(self).items() if name not in ("credit", "rewards")}
        file = io.BytesIO()
        save_driver(file, self.credit.driver)
        return state | {"true_rewards": self.rewards.true, "credit_archive": file.getvalue()}

    def __setstate__(self: Any, state: dict[str, Any]) -> None:
        archive, true = state.pop("credit_archive"), state.pop("true_rewards")
        vars(self).update(state)
        self.credit = StreamCredit(
            self.observation_space, self.action_space, self.n_envs, **self.settings
        )
        load_driver(io.BytesIO(archive), self.credit.driver)
        self.rewards = _PaidRewards(self, true)


class _PaidRewards:
    """Rewards as an array of a replay buffer: true when written, with credit when read.

    So every way in which Stable-Baselines3 samples, over one step or several, stays its own.
    """

    def __init__(self, buffer: Any, true: np.ndarray):
        self.buffer, self.true = buffer, true

    def __setitem__(self, place: Any, value: Any) -> None:
        self.true[place] = value

    def __getitem__(self, place: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        return self.buffer.paid(*place)

    @property
    def nbytes(self) -> int:
        """Of the array."""
        return self.true.nbytes


class CreditReplayBuffer(_CreditedReplay[ReplayBuffer], ReplayBuffer):
    """A replay buffer that stores true rewards and adds current credit to sampled batches.

    ``DQN("MlpPolicy", env, replay_buffer_class=sr.CreditReplayBuffer)``, or ``sr.with_credit``.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: Any,
        action_space: Any,
        device: Any = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        **settings: Unpack[Settings],
    ):
        """Reserves the memory.

        Args:
          buffer_size: this and the following arguments, except the settings, are those of
            Stable-Baselines3.
          observation_space: of one environment.
          action_space: of one environment.
          device: of the batches.
          n_envs: how many environments there are.
          optimize_memory_usage: keep every observation once.
          handle_timeout_termination: whether truncated episodes bootstrap.
          **settings: those that ``StreamCredit`` describes.
        """
        super().__init__(
            buffer_size, observation_space, action_space, device, n_envs,
            optimize_memory_usage, handle_timeout_termination,
        )  # fmt: skip
        self._set_up(dict(settings))


class CreditNStepReplayBuffer(_CreditedReplay[NStepReplayBuffer], NStepReplayBuffer):
    """``CreditReplayBuffer`` with n-step returns, for agents that have ``n_steps``.

    ``sr.with_credit`` chooses it if necessary.
    """

    def __init__(self, *args: Any, n_steps: int = 3, gamma: float = 0.99, **settings: Any):
        """Reserves the memory.

        Args:
          *args: as in Stable-Baselines3.
          n_steps: number of rewards in a return.
          gamma: the discount.
          **settings: of the buffer, and those that ``StreamCredit`` describes.
        """
        own = {"device", "n_envs", "optimize_memory_usage", "handle_timeout_termination"}
        theirs = {name: settings.pop(name) for name in own & settings.keys()}
        super().__init__(*args, n_steps=n_steps, gamma=gamma, **theirs)
        self._set_up(settings)


def with_credit(model: Algorithm, **settings: Unpack[Settings]) -> Algorithm:
    """Gives an off-policy agent of Stable-Baselines3 a replay buffer with credit; returns it.

    Args:
      model: DQN, QR-DQN, SAC, TD3 or a similar agent, before its training starts.
      **settings: those that ``StreamCredit`` describes. ``max_episode_steps`` is by default the
        environment's time limit, or 1,000 steps if it has none.
    """
    buffer = getattr(model, "replay_buffer", None)
    if not isinstance(model, OffPolicyAlgorithm) or not isinstance(buffer, ReplayBuffer):
        raise ValueError(
            f"{type(model).__name__} has no replay buffer: wrap its environment in "
            "SyntheticReturnsVecEnv instead."
        )
    if isinstance(buffer, HerReplayBuffer):
        raise ValueError(
            "HerReplayBuffer gives a transition another goal, and another reward with it, each "
            "time it is sampled; credit is learned from the rewards that episodes had: use a plain "
            "replay buffer."
        )
    if isinstance(buffer, DictReplayBuffer):
        raise ValueError(
            "the observations are a mapping, and credit is given to one array: put "
            "gymnasium.wrappers.FlattenObservation around the environment."
        )
    if buffer.full or buffer.pos:
        raise ValueError(
            f"the replay buffer holds {buffer.size()} transitions whose rewards may not be "
            "true: call with_credit before learn, or load a buffer that paid credit."
        )
    limit = time_limit(model.env) if model.env is not None else None
    if limit is not None:
        settings.setdefault("max_episode_steps", limit)
    several = isinstance(buffer, NStepReplayBuffer)
    model.replay_buffer_class = CreditNStepReplayBuffer if several else CreditReplayBuffer
    # With these an agent that was saved makes the same buffer when it is loaded.
    keywords: dict[str, Any] = model.replay_buffer_kwargs | dict(settings)
    model.replay_buffer_kwargs = keywords
    model.replay_buffer = model.replay_buffer_class(
        model.buffer_size,
        buffer.observation_space,
        buffer.action_space,
        device=buffer.device,
        n_envs=buffer.n_envs,
        optimize_memory_usage=model.optimize_memory_usage,
        **keywords,
    )
    return model
