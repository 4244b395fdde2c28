"""A view crops and thins, and refuses what it cannot do."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.data.buffer import padded
from synthetic_returns.credit.view import View
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
