"""Bad use gets an error that names the value, the rule and the remedy."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from synthetic_returns.credit.view import View
from synthetic_returns.wrappers.stream import Settings, StreamCredit
from synthetic_returns.wrappers.vector import SyntheticReturnsVectorWrapper
from tests.wrappers.planned import Known, PlannedEnv
from tests.wrappers.small import METHOD


def test_a_conserving_method_is_refused_where_rewards_are_not_paid_in_full():
    envs = gymnasium.make_vec("synthetic_returns/Chain-v0", num_envs=2)
    with pytest.raises(ValueError, match=r"beta is 0 and .* 'advance' .*: leave beta at 1"):
        SyntheticReturnsVectorWrapper(envs, beta=0.0)
    wrapped = SyntheticReturnsVectorWrapper(envs)
    with pytest.raises(ValueError, match=r"beta is 0\.5 and"):
        wrapped.credit.beta = 0.5


def planned(plan=((3, False),), **settings):
    env = gymnasium.vector.SyncVectorEnv([lambda: PlannedEnv(0, list(plan))])
    return SyntheticReturnsVectorWrapper(
        env, **{"method": METHOD, "max_episode_steps": 5} | settings
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": float("nan")}, "alpha is nan; it must be a finite number"),
        ({"beta": float("inf")}, "beta is inf; it must be a finite number"),
        (
            {"max_episode_steps": 0},
            "max_episode_steps is 0; it must be a whole number of at least 1",
        ),
        ({"learn_every": 0}, "learn_every is 0"),
        ({"memory_mb": 1e-6}, "memory_mb is 1e-06; .* raise memory_mb, lower max_episode"),
        ({"autoreset_mode": "sometimes"}, "autoreset mode is 'sometimes'.*pass autoreset_mode="),
        (
            {"observation_fn": lambda observation: np.zeros((4, 2))},
            r"observation_fn returned float64\[4, 2\] for a batch of 1.*\[1, ...\]",
        ),
        (
            {"view": View(rows=(0, 3))},
            r"rows is \(0, 3\), .*has shape \(3,\); they crop images.*use None to see all",
        ),
        ({"view": View(changes=True)}, r"changes is True .*shape \(3,\); .*set changes to False"),
        ({"method": "episodix"}, "episodix.*did you mean 'episodic'"),
        ({"method": "none"}, "'none' gives nothing; a wrapper can change rewards only"),
        ({"method": "paper"}, "'paper' is trained with the agent, which a wrapper does not see"),
        (
            {"encoder": lambda x: jnp.sum(x)},
            r"the encoder turns .* shape \(\); it must keep the leading axes",
        ),
    ],
)
def test_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        planned(**settings)


def test_unknown_setting():
    with pytest.raises(TypeError, match="alhpa"):
        planned(alhpa=1.0)


def test_alpha_can_be_changed_but_not_to_nonsense():
    env = planned()
    env.credit.alpha = 0.5
    with pytest.raises(ValueError, match="alpha is nan"):
        env.credit.alpha = float("nan")


@pytest.mark.parametrize(
    "space", [spaces.Dict({"x": spaces.Discrete(2)}), spaces.Text(5), spaces.MultiBinary(3)]
)
def test_observation_space(space):
    with pytest.raises(ValueError, match=r"observation space is .*pass observation_fn="):
        StreamCredit(space, spaces.Discrete(2), 2)


def test_an_environment_that_does_not_say_how_it_resets():
    env = gymnasium.vector.SyncVectorEnv([lambda: PlannedEnv(0, [(3, False)])])
    env.metadata = {}
    with pytest.raises(ValueError, match=r"autoreset mode is None.*pass autoreset_mode='NextStep'"):
        SyntheticReturnsVectorWrapper(env)


def test_an_episode_that_is_too_long():
    env = planned([(6, False)], method=Known())
    env.reset()
    for _ in range(5):
        env.step(np.zeros(1, int))
    with pytest.raises(ValueError, match=r"longer than 5 steps.*pass max_episode_steps=10"):
        env.step(np.zeros(1, int))


def test_a_step_before_a_reset():
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"call reset\(\) before step"):
        planned().step(np.zeros(1, int))


def test_a_reward_that_is_not_finite(monkeypatch):
    env = planned()
    monkeypatch.setattr("tests.wrappers.planned.reward", lambda arrived: float("nan"))
    env.reset()
    with pytest.raises(ValueError, match="reward of environment 0 is nan; it must be finite"):
        env.step(np.zeros(1, int))


def test_an_observation_that_is_not_finite(monkeypatch):
    env = planned()
    env.reset()
    monkeypatch.setattr("tests.wrappers.planned.state", lambda *_: np.full(3, np.nan, np.float32))
    monkeypatch.setattr("tests.wrappers.planned.reward", lambda arrived: 0.0)
    with pytest.raises(ValueError, match=r"credit in environment 0 is nan.*observations"):
        env.step(np.zeros(1, int))


def test_observations_that_change_their_shape(monkeypatch):
    shapes = iter([(1, 3), (1, 3), (1, 2)])
    env = planned(observation_fn=lambda observation: np.zeros(next(shapes)))
    env.reset()
    with pytest.raises(ValueError, match=r"shape \(1, 2\).*expected to have shape \(3,\)"):
        env.step(np.zeros(1, int))


def test_memory_is_bounded():
    """Long episodes of large observations: fewer are kept."""
    space = spaces.Box(0, 255, (84, 84, 4), np.uint8)
    credit = StreamCredit(space, spaces.Discrete(2), 8, max_episode_steps=100, memory_mb=100.0)
    buffer, (recorder,) = credit.driver.buffer, credit.driver.recorders
    assert buffer.slots == 27
    arrays = [*buffer.arrays.values(), *recorder.snapshot().values()]
    used = sum(array.nbytes for array in arrays)
    assert 0.9 < used / 100e6 <= 1


def test_the_settings_are_those_of_the_core():
    import inspect

    parameters = inspect.signature(StreamCredit.__init__).parameters.values()
    names = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert names == Settings.__annotations__.keys()
