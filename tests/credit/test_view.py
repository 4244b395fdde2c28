"""A view crops, takes differences and thins, for every method; it refuses what it cannot do."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.data.buffer import padded
from synthetic_returns.credit.data.episode import Segment
from synthetic_returns.credit.driver import CreditDriver
from synthetic_returns.credit.explainer import EpisodeExplainer, Rollout
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.spec import EpisodeSpec
from synthetic_returns.credit.view import View
from synthetic_returns.types import StepType, TimeStep
from tests.credit.methods import Linear, Uniform
from tests.credit.test_recorder import make_stream, thinned_by_hand


def test_a_part_of_an_image():
    view = View(rows=(1, 3), columns=(1, 2))
    image = np.arange(2 * 4 * 2 * 1).reshape(2, 4, 2, 1)
    np.testing.assert_array_equal(view.crop(image), image[:, 1:3, 1:2])
    np.testing.assert_array_equal(view.crop(jnp.asarray(image)), image[:, 1:3, 1:2])
    assert view.shape((4, 2, 1)) == (2, 1, 1)
    assert View().shape((4,)) == (4,)


def test_what_does_not_fit_is_refused():
    view = View(rows=(1, 3), columns=(1, 2))
    with pytest.raises(ValueError, match=r"rows is \(1, 3\).*shape \(2, 2, 1\).*within"):
        view.shape((2, 2, 1))
    with pytest.raises(ValueError, match=r"shape \(2, 2, 1\).*at least 2 frames"):
        View(changes=True).shape((2, 2, 1))
    for name in ("rows", "columns"):
        with pytest.raises(ValueError, match=rf"{name} is \(3, 1\)"):
            View(**{name: (3, 1)})  # pyright: ignore
    with pytest.raises(ValueError, match="stride is 0"):
        View(stride=0)


@pytest.mark.parametrize("stride", [1, 2, 4])
def test_whole_episodes_are_thinned_like_those_that_are_recorded(stride):
    _, episodes = make_stream([[6, 1, 5, 4, 2]], seed=0)
    whole = [episode for _, _, episode in episodes]
    thin = jax.tree.map(np.asarray, eqx.filter_jit(View(stride=stride).thin)(padded(whole, 6)))
    for column, episode in enumerate(whole):
        observation, reward, terminates = thinned_by_hand(episode, stride)
        steps = int(thin.length[column])
        assert steps == len(reward)
        np.testing.assert_array_equal(thin.observation[: steps + 1, column], observation)
        np.testing.assert_allclose(thin.reward[:steps, column], reward, rtol=1e-5)
        np.testing.assert_array_equal(thin.discount[:steps, column], terminates)
        assert not np.any(thin.reward[steps:, column])


class Remembers(Linear):
    """Has no encoder: remembers the first state that it learns from; a state is worth its sum."""

    name: ClassVar[str] = "test-remembers"

    def init(self, spec, key):
        return jnp.zeros(spec.observation_shape, spec.observation_dtype)

    def learn(self, state, episodes, key):
        return episodes.source[0, 0], {}

    def assign(self, state, carry, segment):
        return super().assign(jnp.ones(state.size), carry, segment)

    def explain(self, state, episodes):
        return super().explain(jnp.ones(state.size), episodes)

    def of_states(self, state, observation):
        return jnp.sum(observation, axis=(1, 2, 3))


def test_every_method_sees_differences():
    view, steps = View(rows=(0, 2), changes=True), 4
    spec = EpisodeSpec.seen(view, (3, 2, 3), np.dtype(np.uint8), steps)
    assert (spec.observation_shape, spec.observation_dtype) == ((2, 2, 2), np.float32)
    driver = CreditDriver(
        Remembers(), spec, view, max_episode_steps=steps, num_envs=1, recent=1,
        key=jax.random.key(0),
    )  # fmt: skip
    frames = np.random.default_rng(0).integers(0, 256, (steps + 1, 1, 3, 2, 3), np.uint8)
    seen = np.diff(frames[:, 0, :2].astype(np.float64) / 255, axis=-1)
    time = np.arange(steps + 1)[:, None]
    segment = Segment(
        observation=view.crop(frames),
        first=time == 0,
        last=time == steps,
        reward=np.ones((steps, 1), np.float32),
        discount=np.ones((steps, 1), np.float32),
    )
    worth = [*seen.sum(axis=(1, 2, 3))[:-1], 0]  # a terminal state earns nothing
    driver.rewards(segment)
    paid = driver.rewards(segment)  # it learns from every other episode
    np.testing.assert_allclose(paid[:, 0], worth[1:], atol=1e-5)
    np.testing.assert_allclose(driver.state, seen[0], atol=1e-6)
    np.testing.assert_allclose(driver.explain(driver.recent[0]).paid, worth, atol=1e-5)
    assert driver.buffer.arrays["observation"].dtype == np.uint8  # small, as they came
    credit = EpisodeExplainer(driver.state, driver.method, view)
    np.testing.assert_allclose(credit.of_states(jnp.asarray(frames[:-1, 0])), worth[:-1], atol=1e-5)


class Shared(Uniform):
    """Explains what it pays: the same share of the return for every state."""

    name: ClassVar[str] = "test-shared"

    def explain(self, state, episodes):
        mean = jnp.sum(episodes.reward, axis=0) / episodes.length.astype(jnp.float32)
        share = jnp.broadcast_to(mean[None], episodes.observation.shape[:2])
        return Explanation({"share": Term(share, "share")}, credit="share")


def test_truncated_episodes_are_explained_with_the_rewards_that_they_are_paid_by():
    view, steps = View(truncated_reward=-7.0), 4
    kinds = [StepType.FIRST, *[StepType.MID] * (steps - 1), StepType.LAST]
    timestep = TimeStep(
        step_type=jnp.asarray(kinds, jnp.int8)[:, None],
        reward=jnp.ones((steps + 1, 1)),
        discount=jnp.ones((steps + 1, 1)),  # it was cut off
        observation=jnp.zeros((steps + 1, 1, 2)),
        events={},
    )
    spec = EpisodeSpec.seen(view, (2,), np.dtype(np.float32), steps)
    driver = CreditDriver(
        Shared(), spec, view, max_episode_steps=steps, num_envs=1, key=jax.random.key(0)
    )
    segment = Segment(
        observation=np.asarray(timestep.observation),
        first=np.asarray(timestep.first),
        last=np.asarray(timestep.last),
        reward=np.asarray(timestep.reward[1:]),
        discount=np.asarray(timestep.discount[1:]),
    )
    ((_, paid),) = driver.follow(segment, None)
    assert paid.reward is not None
    np.testing.assert_allclose(paid.reward[:, 0], [-1, -1, -1, 0], atol=1e-6)
    explained = EpisodeExplainer(driver.state, driver.method, view).explain(Rollout(timestep))
    np.testing.assert_allclose(explained.paid[1:], paid.reward, atol=1e-6)
