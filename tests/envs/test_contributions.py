"""True contributions: what a task owes for what was done, and the steps that change it."""

import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.envs import rooms
from synthetic_returns.envs.base import Environment, VectorEnvironment
from synthetic_returns.envs.key_to_door import KEY_COLOURS
from synthetic_returns.envs.registry import TASKS, make
from synthetic_returns.types import StepType
from tests.envs.playing import (
    ENVIRONMENTS,
    Policy,
    arrange,
    jit_for_long,
    random_policy,
    scripted_policy,
)
from tests.envs.test_key_to_door import DOWN, UP, place

over_jax_tasks = pytest.mark.parametrize("name", TASKS)
over_environments = pytest.mark.parametrize("name", ENVIRONMENTS)

# What the steps of a scripted episode contribute to later ones, whatever they are paid at once.
CONTRIBUTED = {
    "chain": 1,
    "catch": 0,
    "catch-delayed": 19,  # the last ball is paid at once
    "catch-scoreboard": 19,
    "key-to-door": 5,
    "key-to-door-no-reward": 9,  # the door can be open for nine of ten steps
    "key-to-door-two-keys": 4,
    "key-to-door-chained": 5,  # the first key has all of it
    "key-to-door-hidden": 5,
    "key-to-door-two-sites": 10,
    "umbrella": 1,
    "t-maze": 0.5,  # who has not seen the cue is right half of the time
    "dense": 0.25 * 79,
    "balance": 0.2 * 99,
}
# Tasks in which contributions are means, and what comes of them is luck.
LUCK = {"watch-repair"}
over_certain_tasks = pytest.mark.parametrize("name", [name for name in TASKS if name not in LUCK])


def play_told(env: Environment, policy: Policy, luck: np.ndarray) -> tuple[Any, Any]:
    """The states and the steps of one episode of each environment, ``[time, episodes]``."""
    vector = VectorEnvironment(env, contributions=True)

    @jit_for_long
    def run(keys, luck):
        def step(state, luck):
            action = jax.vmap(lambda s, x: policy(env, s, x))(state.inner, luck)
            state, timestep = vector.step(state, action)
            return state, (state.inner, timestep)

        state, first = vector.reset(keys)
        _, later = jax.lax.scan(step, state, luck)
        return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), (state.inner, first), later)

    keys = jax.random.split(jax.random.key(0), luck.shape[1])
    return jax.tree.map(on_host, run(keys, luck))


def on_host(x: jax.Array) -> Any:
    """In numpy, which compiles nothing; keys have to stay as they are."""
    return x if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else np.asarray(x)


def make_luck(env: Environment, episodes: int) -> np.ndarray:
    """Numbers from [0, 1), one for each step of the longest episode."""
    shape = (env.max_episode_steps, episodes)
    return np.random.default_rng(0).random(shape, np.float32)


def either_policy(env: Environment, state: Any, luck: jax.Array) -> jax.Array:
    """The script where luck is negative: both policies are compiled together."""
    scripted, at_random = (policy(env, state, luck) for policy in (scripted_policy, random_policy))
    return jnp.where(luck < 0, scripted, at_random)


@functools.cache
def played(name: str) -> Any:
    """Steps of 50 random episodes, and of 50 scripted ones."""
    env = make(name)
    luck = make_luck(env, 50)
    return play_told(env, either_policy, np.concatenate([luck, np.full_like(luck, -1)], axis=1))[1]


def told(name: str, policy: Policy) -> tuple[Any, np.ndarray, np.ndarray]:
    """Steps of whole episodes; which are of the first one in their column, and which end it."""
    columns = slice(0, 50) if policy is random_policy else slice(50, 100)
    steps = jax.tree.map(lambda x: x[:, columns], played(name))
    last = steps.step_type == StepType.LAST
    first_episode = np.cumsum(last, axis=0) - last == 0
    return steps, first_episode, first_episode & last


@over_environments
def test_contributions_are_told_on_request_only_and_change_nothing_else(name):
    assert make(name).has_contributions
    keys = jax.random.split(jax.random.key(0), 3)
    found = []
    for contributions in (False, True):
        vector = VectorEnvironment(make(name), contributions)

        @jax.jit
        def two_steps(keys, vector=vector):
            state, first = vector.reset(keys)
            return [first, vector.step(state, jnp.zeros(3, jnp.int32))[1]]

        found.append(two_steps(keys))
    for plain, told in zip(*found, strict=True):
        assert plain.contribution is None
        assert told.contribution.shape == (3,)
        assert told.contribution.dtype == jnp.float32
        same = dataclasses.replace(told, contribution=None)
        jax.tree.map(np.testing.assert_array_equal, plain, same)


@pytest.mark.parametrize("policy", [random_policy, scripted_policy])
@over_jax_tasks
def test_what_is_owed_starts_from_nothing_and_is_settled_at_the_end(name, policy):
    steps, first_episode, _ = told(name, policy)
    assert not np.any(steps.contribution[steps.step_type == StepType.FIRST])
    total = np.sum(np.where(first_episode, steps.contribution, 0), axis=0)
    np.testing.assert_allclose(total, 0, atol=1e-4)


@over_certain_tasks
def test_scripted_steps_contribute_what_is_documented(name):
    steps, first_episode, ends = told(name, scripted_policy)
    contribution = np.where(first_episode & ~ends, steps.contribution, 0)
    contributed = np.sum(np.maximum(contribution, 0), axis=0)
    np.testing.assert_allclose(contributed, CONTRIBUTED[name], rtol=1e-4)


@over_certain_tasks
def test_with_contributions_the_last_step_earns_only_what_it_earns_itself(name):
    """Of the reward that is paid at the end, everything but the last step's own was contributed."""
    steps, _, ends = told(name, scripted_policy)
    assert ends.sum() == ends.shape[1]
    own = {"catch": 1, "catch-delayed": 1, "catch-scoreboard": 1, "dense": 0.25, "balance": 0.2}
    own["t-maze"] = 0.5  # of the other half, the choice is the doing of the last step
    net = np.asarray(steps.reward + steps.contribution)[ends]
    if name == "key-to-door-no-reward":
        assert (net == -9).all()  # what the key saved is never paid; the door ends the costs
    elif name == "key-to-door-two-keys":
        assert (net == -5).all()  # as much as a closed door costs
    else:
        np.testing.assert_allclose(net, own.get(name, 0), atol=1e-4)


# What part of a state tells that it was done, its value if not, and the time from which on it
# cannot be done any more.
UNDONE = {
    "chain": ("triggered", False, 8),
    "catch-delayed": ("unpaid", 0, 0),
    "catch-scoreboard": ("unpaid", 0, 0),
    "key-to-door": ("held", 0, 15),
    "key-to-door-no-reward": ("held", 0, 15),
    "key-to-door-two-keys": ("held", 0, 15),
    "key-to-door-chained": ("held", 0, 15),
    "key-to-door-hidden": ("held", 0, 15),
    "key-to-door-two-sites": ("held", False, 15),
    "dense": ("unpaid", 0, 0),
}


@pytest.mark.parametrize("name", UNDONE)
def test_what_is_owed_is_what_the_script_would_get_less_without_it(name):
    """By intervention: states of a random walk, played to the end twice."""
    env = make(name)
    field, nothing, since = UNDONE[name]

    def often_done(env, state, luck):
        """By the script as long as it matters, then at random."""
        early = state.time < (15 if name.startswith("key") else env.max_episode_steps)
        scripted = luck * 7 < 6 if name.startswith(("key", "chain")) else luck < 0.5
        aimless = random_policy(env, state, luck * 7 % 1)
        return jnp.where(early & scripted, env.optimal_action(state), aimless)

    states, steps = play_told(env, often_done, make_luck(env, 60))
    over = np.cumsum(steps.step_type == StepType.LAST, axis=0)
    running = (over == 0) & (states.time >= since)
    rows = np.argwhere(running)
    rows = rows[np.random.default_rng(0).choice(len(rows), min(len(rows), 200), replace=False)]
    chosen = jax.tree.map(lambda x: x[rows[:, 0], rows[:, 1]], states)
    part = getattr(chosen, field)
    undone = eqx.tree_at(lambda s: getattr(s, field), chosen, np.full_like(part, nothing))

    @jit_for_long
    @jax.vmap
    def rest(state):
        def step(carry, _):
            state, over = carry
            state, timestep = env.step(state, env.optimal_action(state))
            return (state, over | timestep.last), jnp.where(over, 0.0, timestep.reward)

        return jnp.sum(jax.lax.scan(step, (state, False), length=env.max_episode_steps)[1])

    owed = np.asarray(jax.jit(jax.vmap(env.owed))(chosen))
    assert len(np.unique(owed)) > 1
    np.testing.assert_allclose(rest(chosen) - rest(undone), owed, atol=1e-4)


def contributions(env: Environment, state: Any, actions: list[int]) -> list[float]:
    """What each action contributes, from any state on."""
    vector = VectorEnvironment(env, contributions=True)
    step, found = jax.jit(vector._step_one), []
    for action in actions:
        state, timestep = step(state, jnp.int32(action))
        assert timestep.contribution is not None
        found.append(float(timestep.contribution))
    return found


def test_the_key_contributes_when_it_is_taken_and_a_door_out_of_reach_takes_it_back():
    env = make("key-to-door")
    state = arrange(env, position=place(3, 5), keys=place(2, 5)[None])
    assert contributions(env, state, [UP, DOWN, UP]) == [5, 0, 0]
    # Two steps from the door: with two steps left it can be reached, with one it cannot.
    state = arrange(env, time=83, position=place(3, 5), held=rooms.YELLOW)
    assert contributions(env, state, [DOWN]) == [-5]
    assert contributions(env, state, [UP, DOWN]) == [0, -5]
    assert contributions(env, state, [UP, UP]) == [0, -5]  # it has paid


@pytest.mark.parametrize(("key", "worth"), [(0, 4), (1, 3)])
def test_of_two_keys_each_contributes_its_own(key, worth):
    env = make("key-to-door-two-keys")
    keys = jnp.stack([place(1, 3), place(1, 7)]).at[key].set(place(2, 5))
    assert contributions(env, arrange(env, position=place(3, 5), keys=keys), [UP]) == [worth]


def test_dawdling_in_front_of_a_door_costs_what_it_wastes():
    env = make("key-to-door-no-reward")
    state = arrange(env, time=45, position=place(3, 5), held=rooms.YELLOW)
    assert contributions(env, state, [UP, DOWN, UP]) == [0, -2, 0]


def test_a_chain_is_owed_to_its_first_key_and_lost_with_a_door():
    env = make("key-to-door-chained")
    state = arrange(env, position=place(3, 5), keys=place(2, 5)[None])
    assert contributions(env, state, [UP]) == [5]
    door = {"time": 15 + 30, "position": place(3, 5)}
    state = arrange(env, **door, held=KEY_COLOURS[0])
    assert contributions(env, state, [UP, UP, *[DOWN] * 8]) == [0] * 10  # opened, and on
    assert contributions(env, state, [DOWN] * 10) == [*[0] * 7, -5, 0, 0]
    assert contributions(env, arrange(env, **door, held=0), [UP, UP, UP]) == [0, 0, 0]


def test_of_two_sites_a_door_that_has_paid_owes_nothing():
    env = make("key-to-door-two-sites")
    keys = jnp.stack([place(1, 5), place(2, 5)])
    assert contributions(env, arrange(env, position=place(3, 5), keys=keys), [UP, UP]) == [5, 5]
    door = {"time": 15 + 30, "position": place(3, 5)}
    state = arrange(env, **door, held=(True, True))
    assert contributions(env, state, [UP, UP, UP]) == [0, -5, 0]
    assert contributions(env, state, [DOWN] * 10) == [*[0] * 7, -5, 0, 0]


def test_a_landing_contributes_but_the_last_one_is_paid_at_once():
    env = make("catch-delayed", runs=2, miss_reward=-2.0)
    caught = arrange(env, columns=[3, 3])
    assert contributions(env, caught, [1] * 12) == [*[0] * 5, 1, *[0] * 6]
    missed = arrange(env, columns=[0, 3])
    assert contributions(env, missed, [1] * 13) == [*[0] * 5, -2, *[0] * 6, 2]


def test_a_task_that_does_not_know_says_so():
    class Unknown(type(make("chain"))):
        owed = Environment.owed

    assert not Unknown().has_contributions
    with pytest.raises(NotImplementedError, match=r"Unknown does not know .*: define owed in"):
        Unknown().owed(arrange(Unknown()))
