"""Replay that stays true: what a sampled transition is paid, against whole episodes followed."""

from typing import Any

import equinox as eqx
import gymnasium
import numpy as np
import pytest

from synthetic_returns.credit.advance.method import Advance
from synthetic_returns.credit.data.episode import Segment
from synthetic_returns.credit.data.replay import Replay
from synthetic_returns.credit.view import View
from synthetic_returns.nn.settings import TorsoSettings
from tests.wrappers.planned import Known, PlannedEnv
from tests.wrappers.small import METHOD

pytest.importorskip(
    "stable_baselines3", reason="needs the extra: pip install 'synthetic-returns[sb3]'"
)
contrib = pytest.importorskip(
    "sb3_contrib", reason="needs the extra: pip install 'synthetic-returns[sb3]'"
)
import torch  # noqa: E402
from stable_baselines3 import DQN, PPO, SAC, TD3, HerReplayBuffer  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv  # noqa: E402

import synthetic_returns as sr  # noqa: E402

torch.set_num_threads(1)

ADVANCE = Advance(
    encoder=TorsoSettings(sizes=(16,)),
    head_sizes=(16,),
    replay=Replay(slots=32, batch_size=8, updates_per_episode=1.0),
    learning_rate=3e-2,  # so that credit is far from 0 soon
)
PLANS = [[(3, False), (1, True), (6, False)], [(4, True), (2, False)]]


def planned(scale: float = 0.01) -> DummyVecEnv:
    class Small(gymnasium.Wrapper):
        def step(self, action):
            observation, reward, terminated, truncated, info = self.env.step(action)
            reward = scale * float(reward) * (1 + int(action))
            return observation, reward, terminated, truncated, info

    rows: Any = [lambda r=r, plan=plan: Small(PlannedEnv(r, plan)) for r, plan in enumerate(PLANS)]
    return DummyVecEnv(rows)


def agent(method: Any = ADVANCE, env: Any = None, credit: Any = None, **settings: Any) -> Any:
    settings = {"buffer_size": 60, "learning_starts": 10, "batch_size": 8} | settings
    model = DQN("MlpPolicy", env or planned(), device="cpu", seed=0, **settings)
    credit = {"max_episode_steps": 6, "learn_every": 2} | (credit or {})
    return sr.with_credit(model, method=method, **credit)


class Played:
    """Every step that was given to a buffer, noted beside it."""

    def __init__(self, buffer: Any):
        self.steps: list[Any] = []
        add = buffer.add

        def noted(obs, next_obs, action, reward, done, infos):
            cut_off = [info.get("TimeLimit.truncated", False) for info in infos]
            self.steps.append((obs.copy(), next_obs.copy(), action.copy(), reward.copy(), done))
            self.steps[-1] += (np.array(cut_off),)
            add(obs, next_obs, action, reward, done, infos)

        buffer.add = noted

    def held(self, buffer: Any, env: int) -> list[Any]:
        """The rows of an environment that are still in the buffer, oldest first."""
        first = len(self.steps) - buffer.size()
        return [
            (i % buffer.buffer_size, *(x[env] for x in self.steps[i]))
            for i in range(first, len(self.steps))
        ]


def reference(buffer: Any, played: Played, mix: Any) -> dict[tuple[int, int], float]:
    """What every stored step is paid: its episode is followed step by step and settled."""
    driver, paid = buffer.credit.driver, {}
    for env in range(buffer.n_envs):
        advanced, time = 0.0, 0
        before = len(played.steps) - buffer.size()
        spoiled = buffer.pos if buffer.full and buffer.optimize_memory_usage else None
        for i in reversed(range(before)):  # how long the first episode had lasted
            if played.steps[i][4][env]:
                break
            time += 1
        for row, obs, arrived, action, reward, done, _ in played.held(buffer, env):
            segment = Segment(
                observation=driver.view.crop(np.stack([obs, arrived])[:, None]).astype(np.float32),
                first=np.array([[time == 0], [False]]),
                last=np.array([[False], [False]]),
                reward=np.zeros((1, 1), np.float32),
                discount=np.ones((1, 1), np.float32),
                action=np.asarray(action).reshape(1, 1),
            )
            known = driver.method, driver.view.stride, driver.state
            credit = _credit(*known, np.array([time], np.int32), vars(segment))
            earned = 0.0 if done else float(credit[0, 0])
            if done and driver.method.conserves:
                earned = -advanced
            if row == spoiled:  # the newest observation is kept in its place
                earned = 0.0
            paid[row, env] = mix(float(reward), earned)
            advanced, time = (0.0, 0) if done else (advanced + earned, time + 1)
    return paid


@eqx.filter_jit
def _credit(method: Any, stride: int, state: Any, time: Any, segment: dict[str, Any]) -> Any:
    """What a method says of a segment of episodes that have lasted so long, before settlement."""
    credit, _ = method.assign(state, method.resume(state, time), Segment(**segment))
    return credit.shared_out(stride).reward


METHODS = {
    "advance": {"method": ADVANCE},
    "strided": {"method": ADVANCE, "credit": {"view": View(stride=2)}},
    "episodic": {"method": METHOD, "credit": {"alpha": 0.5, "beta": 2.0}},
    "memory": {
        "method": ADVANCE,
        "optimize_memory_usage": True,
        "replay_buffer_kwargs": {"handle_timeout_termination": False},
    },
}


# After the buffer is full; how it is kept also before.
@pytest.mark.parametrize(
    ("kind", "steps"), [*((kind, 150) for kind in METHODS), ("advance", 40), ("memory", 40)]
)
def test_what_is_sampled_is_what_the_method_says_now(kind, steps):
    model = agent(**METHODS[kind])
    buffer, played = model.replay_buffer, Played(model.replay_buffer)
    model.learn(steps)
    assert buffer.full == (steps == 150)
    credit = METHODS[kind].get("credit", {})
    alpha, beta = credit.get("alpha", 1.0), credit.get("beta", 1.0)
    expected = reference(buffer, played, lambda r, c: alpha * c + beta * r)
    rows, envs = (np.array(x) for x in zip(*expected, strict=True))
    if kind == "memory" and buffer.full:  # this row is never sampled
        sampled = rows != buffer.pos
        rows, envs = rows[sampled], envs[sampled]
    paid = buffer.paid(rows, envs)
    wanted = np.array([expected[row, env] for row, env in zip(rows, envs, strict=True)])
    np.testing.assert_allclose(paid, wanted, rtol=1e-4, atol=1e-4)
    true = buffer.rewards.true[rows, envs]
    assert np.abs(paid - true).max() > 0.01
    np.testing.assert_allclose(
        true, [played.steps[i][3][e] for i, e in _newest(rows, envs, played, buffer)], rtol=1e-6
    )


def _newest(rows: np.ndarray, envs: np.ndarray, played: Played, buffer: Any) -> list[Any]:
    last = {i % buffer.buffer_size: i for i in range(len(played.steps))}
    return [(last[int(row)], int(env)) for row, env in zip(rows, envs, strict=True)]


def test_whole_episodes_are_paid_their_true_return():
    model = agent(buffer_size=1000)
    buffer = model.replay_buffer
    model.learn(58)
    for env in range(2):
        ends = np.flatnonzero(buffer.dones[: buffer.pos, env])
        starts = [0, *(ends[:-1] + 1)]
        assert len(ends) > 3
        for start, end in zip(starts, ends, strict=True):
            rows = np.arange(start, end + 1)
            true = buffer.rewards.true[rows, env]
            assert buffer.paid(rows, env).sum() == pytest.approx(true.sum(), abs=1e-4)


def test_old_transitions_are_paid_what_was_learned_later():
    model = agent(buffer_size=1000)
    buffer = model.replay_buffer
    model.learn(60)
    before = buffer.paid(np.arange(20), 0)
    model.learn(60, reset_num_timesteps=False)
    assert np.abs(buffer.paid(np.arange(20), 0) - before).max() > 1e-3


def test_a_batch_holds_what_is_paid():
    model = agent(buffer_size=1000)
    model.learn(80)
    buffer = model.replay_buffer
    batch = buffer.sample(200)
    rows = {tuple(buffer.observations[i, e]): (i, e) for i in range(buffer.pos) for e in (0, 1)}
    place = [rows[tuple(x.numpy())] for x in batch.observations]
    paid = buffer.paid(*(np.array(x) for x in zip(*place, strict=True)))
    np.testing.assert_allclose(batch.rewards[:, 0].numpy(), paid, rtol=1e-5, atol=1e-6)


def test_several_steps():
    gamma = 0.9
    model = agent(buffer_size=1000, n_steps=3, gamma=gamma)
    model.learn(80)
    buffer = model.replay_buffer
    assert isinstance(buffer, sr.CreditNStepReplayBuffer)
    assert (buffer.n_steps, buffer.gamma) == (3, gamma)
    batch = buffer.sample(100)
    rows = {tuple(buffer.observations[i, e]): (i, e) for i in range(buffer.pos) for e in (0, 1)}
    for state, summed in zip(batch.observations, batch.rewards[:, 0], strict=True):
        row, env = rows[tuple(state.numpy())]
        expected = 0.0
        for ahead in range(3):
            if row + ahead == buffer.pos:
                break
            expected += gamma**ahead * float(buffer.paid(np.array([row + ahead]), env)[0])
            if buffer.dones[row + ahead, env]:
                break
        assert float(summed) == pytest.approx(expected, abs=1e-4)


def test_an_interrupted_episode_is_neither_learned_from_nor_settled():
    model = agent(buffer_size=1000, train_freq=1)
    model.learn(4)  # two steps of episodes of 3 and 4
    model.learn(40)  # starts anew
    buffer = model.replay_buffer
    assert buffer.times[:5, 0].tolist() == [0, 1, 0, 0, 1]  # then come episodes of 1 and 6
    assert len(buffer._before(2, 0)) == 0
    assert all(len(e) in (1, 2, 3, 4, 6) for e in buffer.recent_episodes())


def test_true_rewards_are_kept_under_the_wrapper():
    env = sr.SyntheticReturnsVecEnv(planned(), method=ADVANCE, max_episode_steps=6, learn_every=2)
    model = agent(env=env, buffer_size=1000)
    plain = agent(buffer_size=1000)
    for one in (model, plain):
        one.learn(60)
    np.testing.assert_array_equal(
        model.replay_buffer.rewards.true[:5], plain.replay_buffer.rewards.true[:5]
    )


@pytest.mark.parametrize("n_steps", [1, 3])
def test_it_is_saved_with_the_agent(tmp_path, n_steps):
    model = agent(n_steps=n_steps)
    model.learn(100)
    model.save(tmp_path / "agent.zip")
    model.save_replay_buffer(tmp_path / "replay.pkl")
    if n_steps > 1:
        with pytest.warns(UserWarning, match="n_steps=3"):  # its own buffer has them
            copy: Any = DQN.load(tmp_path / "agent.zip", planned(), device="cpu")
    else:
        copy = DQN.load(tmp_path / "agent.zip", planned(), device="cpu")
    assert type(copy.replay_buffer) is type(model.replay_buffer)
    copy.load_replay_buffer(tmp_path / "replay.pkl")
    rows, envs = np.arange(30), np.zeros(30, int)
    before = model.replay_buffer.paid(rows, envs)
    np.testing.assert_array_equal(copy.replay_buffer.paid(rows, envs), before)
    assert b"synthetic_returns.credit.advance.state" not in (tmp_path / "replay.pkl").read_bytes()
    copy.learn(20, reset_num_timesteps=False)  # goes on
    model.replay_buffer.save(tmp_path / "credit.npz")
    other = agent(n_steps=n_steps)
    other.replay_buffer.load(tmp_path / "credit.npz")
    assert other.replay_buffer.report()["episodes"] == model.replay_buffer.report()["episodes"]


CONTINUOUS = {"SAC": SAC, "TD3": TD3, "TQC": contrib.TQC}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_agents_with_continuous_actions(name):
    env = make_vec_env("Pendulum-v1", 2, seed=0)
    # Episodes have 200 steps; the agents learn after the first two.
    small = {"batch_size": 8, "policy_kwargs": {"net_arch": [16]}, "learning_starts": 420}
    model = CONTINUOUS[name]("MlpPolicy", env, device="cpu", **small)
    model = sr.with_credit(model, method=ADVANCE, learn_every=1)
    assert model.replay_buffer.credit.driver.spec.max_steps == 200
    model.learn(480, callback=sr.SyntheticReturnsCallback())
    assert model.replay_buffer.report()["episodes"] >= 2


def test_qr_dqn_and_the_class_by_itself():
    model = contrib.QRDQN(
        "MlpPolicy", planned(), learning_starts=10, device="cpu",
        replay_buffer_class=sr.CreditReplayBuffer,
        replay_buffer_kwargs={"method": ADVANCE, "max_episode_steps": 6, "learn_every": 2},
    )  # fmt: skip
    model.learn(60)
    assert model.replay_buffer.report()["episodes"] > 5
    assert "trust" in model.replay_buffer.report()
    returns = [e.reward.sum() for e in model.replay_buffer.recent_episodes()]
    assert model.replay_buffer.report()["true_return"] == pytest.approx(np.mean(returns))


class Goals(gymnasium.Env):
    """What HER needs."""

    observation_space = gymnasium.spaces.Dict(
        {n: gymnasium.spaces.Box(-1, 1, (2,)) for n in ("observation", "achieved_goal",
                                                        "desired_goal")}
    )  # fmt: skip
    action_space = gymnasium.spaces.Discrete(2)

    def compute_reward(self, *_):
        return 0.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PPO("MlpPolicy", planned(), device="cpu"), r"PPO has no replay buffer: wrap its"),
        (
            lambda: DQN("MultiInputPolicy", Goals(), replay_buffer_class=HerReplayBuffer,
                        device="cpu"),
            r"HerReplayBuffer gives a transition another goal.*use a plain",
        ),
        (lambda: DQN("MultiInputPolicy", Goals(), device="cpu"), r"mapping.*FlattenObservation"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        sr.with_credit(make())


def test_a_method_that_needs_the_past_and_a_used_buffer_are_refused():
    with pytest.raises(ValueError, match=r"'known' gives a transition depends on all.*'advance'"):
        agent(Known())
    model = agent()
    model.learn(20)
    with pytest.raises(ValueError, match=r"holds \d+ transitions whose rewards may not be true"):
        sr.with_credit(model)


def test_episodes_may_be_longer_than_expected():
    longer = agent(credit={"max_episode_steps": 3})
    longer.learn(40)
    assert longer.replay_buffer.credit.driver.buffer.max_steps > 3
