"""Environments whose every step is known beforehand, and a method whose credit is."""

import dataclasses
from typing import Any, ClassVar

import gymnasium
import jax.numpy as jnp
import numpy as np

from synthetic_returns.credit.data.episode import Episode
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.method import Assignment, CreditMethod
from synthetic_returns.wrappers.credited import Credited

Plan = list[tuple[int, bool]]  # of each episode: its steps, and whether it is cut off


class PlannedEnv(gymnasium.Env):
    """Plays episodes of given lengths, over and over; no two steps of a row look alike."""

    def __init__(self, row: int, plan: Plan):
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(5)
        self.row, self.plan = row, plan
        self.episode, self.time = -1, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.episode, self.time = self.episode + 1, 0
        return state(self.row, self.episode, 0), {}

    def step(self, action: Any):
        length, cut_off = self.plan[self.episode % len(self.plan)]
        self.time += 1
        over = self.time == length
        observation = state(self.row, self.episode, self.time)
        return observation, reward(observation), over and not cut_off, over and cut_off, {}


def state(row: int, episode: int, time: int) -> np.ndarray:
    return np.array([row, episode, time], np.float32)


def reward(arrived: np.ndarray) -> float:
    """Of arriving in a state: a number that no other state of the row has."""
    _, episode, time = arrived
    return float(100 * (episode + 1) + time)


def contribution(observation: Any) -> Any:
    """What ``Known`` says is the credit of states, as numpy or JAX has them."""
    row, episode, time = (observation[..., i] for i in range(3))
    return row + 10 * episode + 0.25 * time


@dataclasses.dataclass(frozen=True)
class Known(CreditMethod):
    """Credit is a known function of the state; nothing is learned."""

    name: ClassVar[str] = "known"
    summary: ClassVar[str] = "a known function of the state"
    replay: Replay = dataclasses.field(default=Replay(slots=32))

    def init(self, spec, key) -> Any:
        return None

    def learn(self, state, episodes, key):
        return state, {}

    def assign(self, state, carry, segment):
        return Assignment(reward=contribution(jnp.asarray(segment.arrived))), carry

    def explain(self, state, episodes):
        return Explanation({"c": Term(contribution(episodes.observation), "c")}, "c")


def planned_episode(row: int, number: int, plan: Plan) -> Episode:
    """An episode as it ought to be recorded: with its terminal state, and an end if it has one."""
    length, cut_off = plan[number % len(plan)]
    states = np.array([state(row, number, time) for time in range(length + 1)])
    rewards = np.array([reward(arrived) for arrived in states[1:]], np.float32)
    discounts = np.ones(length, np.float32)
    discounts[-1] = cut_off
    return Episode(states, rewards, discounts)


def listen(env: Credited, monkeypatch: Any) -> list[Episode]:
    """Collects what the driver is given to learn from."""
    heard: list[Episode] = []
    monkeypatch.setattr(env.credit.driver, "learn", heard.extend)
    return heard


def assert_recorded(heard: list[Episode], plans: list[Plan], finished: list[int]) -> None:
    """Every finished episode of every row was heard of once, in order, with all its rewards."""
    assert len(heard) == sum(finished)
    for row, plan in enumerate(plans):
        mine = [episode for episode in heard if episode.observation[0, 0] == row]
        assert len(mine) == finished[row]
        for number, episode in enumerate(mine):
            want = planned_episode(row, number, plan)
            np.testing.assert_array_equal(episode.observation, want.observation)
            np.testing.assert_array_equal(episode.reward, want.reward)
            np.testing.assert_array_equal(episode.discount, want.discount)
