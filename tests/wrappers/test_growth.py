"""Episodes longer than expected: room is made for them, and nothing is lost."""

import gymnasium
import numpy as np

import synthetic_returns as sr
from synthetic_returns.nn.settings import TorsoSettings

METHOD = sr.Advance(
    encoder=TorsoSettings(sizes=(8,)),
    head_sizes=(8,),
    replay=sr.Replay(slots=8, batch_size=4, updates_per_episode=0.5),
)


def make(**settings):
    env = gymnasium.make_vec("synthetic_returns/CatchDelayed-v0", num_envs=4, runs=3)  # 20 steps
    settings = {"method": METHOD, "max_episode_steps": 5, "learn_every": 2} | settings
    return sr.SyntheticReturnsVectorWrapper(env, **settings)


def play(env, steps, seed=0):
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    paid, true = np.zeros((2, 4))
    sums = []
    for _ in range(steps):
        _, reward, terminated, truncated, info = env.step(rng.integers(0, 3, 4))
        paid, true = paid + reward, true + info["true_reward"]
        ended = terminated | truncated
        sums += zip(paid[ended], true[ended], strict=True)
        paid, true = np.where(ended, 0, paid), np.where(ended, 0, true)
    return np.array(sums)


def test_buffers_grow_to_the_longest_episode():
    env = make()
    sums = play(env, 100)
    assert len(sums) >= 16
    np.testing.assert_allclose(sums[:, 0], sums[:, 1], atol=1e-4)  # every return is paid in full
    episodes = env.recent_episodes()
    assert {len(episode) for episode in episodes} == {20}
    buffer = env.credit.driver.buffer
    assert buffer.max_steps == 32
    assert len(buffer) == buffer.slots == 8
    assert env.credit.driver.updates > 0
    newest = buffer.arrays["observation"][int(buffer.number.argmax()), :21]
    np.testing.assert_array_equal(newest, env.credit.driver.recent[-1].observation)


def test_fewer_are_kept_where_longer_ones_do_not_fit():
    step_mb = (49 * 4 + 8 + 8) / 1e6  # an observation, a reward, a discount and an action
    method = sr.Advance(
        encoder=METHOD.encoder,
        head_sizes=METHOD.head_sizes,
        replay=sr.Replay(slots=64, batch_size=4, updates_per_episode=0.5),
    )
    env = make(method=method, memory_mb=34 * 24 * step_mb)
    assert env.credit.driver.buffer.slots == 64
    play(env, 400)
    buffer = env.credit.driver.buffer
    assert 16 <= buffer.slots < 32
    assert len(buffer) == buffer.slots
    assert env.report()["buffer_mb"] < 34 * 24 * step_mb


def test_a_saved_wrapper_opens_where_less_was_expected(tmp_path):
    env = make()
    play(env, 60)
    env.save(tmp_path / "credit.npz")
    other = make(max_episode_steps=3)
    other.load(tmp_path / "credit.npz")
    mine, yours = env.credit.driver.buffer, other.credit.driver.buffer
    assert len(yours) == len(mine)
    assert yours.max_steps >= 20
    assert len(play(other, 60)) >= 8
