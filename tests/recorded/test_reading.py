"""Episodes are understood however they come, and what is no episode is refused with a remedy."""

import dataclasses
import types
from typing import Any

import numpy as np
import pytest

from synthetic_returns.credit.data.episode import Episode
from synthetic_returns.recorded.format import read_format
from synthetic_returns.recorded.reading import read_episode, read_episodes

STATES = np.arange(8, dtype=np.float32).reshape(4, 2)
REWARDS = np.array([0.0, 0.5, 2.0])
ACTIONS = np.array([1, 0, 2])
WHOLE = {"observations": STATES, "rewards": REWARDS, "actions": ACTIONS}


def tensors(fields):
    torch = pytest.importorskip("torch", reason="needs: pip install 'synthetic-returns[sb3]'")
    made = {name: torch.as_tensor(x) for name, x in fields.items()}
    made["observations"] = made["observations"].bfloat16().requires_grad_()
    return made


FORMS = {
    "mapping": lambda: WHOLE,
    "other names": lambda: {"obs": STATES, "reward": REWARDS, "action": ACTIONS, "info": "any"},
    "tuple": lambda: (STATES, REWARDS, ACTIONS),
    "lists": lambda: {name: x.tolist() for name, x in WHOLE.items()},
    "object": lambda: types.SimpleNamespace(**WHOLE, id=3),
    "tensors": lambda: tensors(WHOLE),
    "Episode": lambda: Episode(STATES, REWARDS, np.array([1, 1, 0], np.float32), ACTIONS),
    "padded": lambda: next(
        read_episodes(
            {
                "observations": np.pad(STATES, [(0, 2), (0, 0)])[None],
                "rewards": np.pad(REWARDS, (0, 2), constant_values=7)[None],
                "actions": np.pad(ACTIONS, (0, 2))[None],
                "mask": [[1, 1, 1, 0, 0]],
            }
        )
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_episode(form):
    episode = read_episode(FORMS[form]())
    np.testing.assert_array_equal(episode.observation, STATES)
    np.testing.assert_array_equal(episode.reward, REWARDS)
    np.testing.assert_array_equal(episode.action, ACTIONS)
    np.testing.assert_array_equal(episode.discount, [1, 1, 0])


def test_the_state_before_stands_in_for_a_terminal_state_that_nobody_kept():
    episode = read_episode((STATES[:3], REWARDS))
    np.testing.assert_array_equal(episode.observation, STATES[[0, 1, 2, 2]])
    assert episode.action is None


def test_an_outcome_is_paid_by_the_last_step():
    episode = read_episode({"observations": STATES, "actions": ACTIONS, "outcome": -1.5})
    np.testing.assert_array_equal(episode.reward, [0, 0, -1.5])
    without_actions = read_episode({"observations": STATES, "outcome": np.array([2])})
    np.testing.assert_array_equal(without_actions.reward, [0, 0, 0, 2])


@pytest.mark.parametrize("truncated", [True, [False, False, True], np.array(True)])
def test_an_episode_that_was_cut_off_goes_on(truncated):
    episode = read_episode(WHOLE | {"truncations": truncated})
    np.testing.assert_array_equal(episode.discount, [1, 1, 1])


def test_lengths_say_where_padded_episodes_end():
    batch = {"observations": np.zeros((2, 5, 3)), "outcome": [1.0, 2.0], "lengths": [5, 2]}
    first, second = read_episodes(batch)
    assert (len(first), len(second)) == (5, 2)
    np.testing.assert_array_equal(second.reward, [0, 2])
    whole, _ = read_episodes({"observations": np.zeros((2, 6, 3)), "rewards": np.ones((2, 5))})
    assert len(whole) == 5


def batch(**changes: Any) -> dict[str, Any]:
    return {"observations": np.zeros((2, 3, 1)), "rewards": np.ones((2, 3))} | changes


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([{"rewards": REWARDS}], r"episode 0 has no observations, only rewards; give .*'observa"),
        ([WHOLE, {"states": STATES}], r"episode 1 has no outcome: give it 'rewards' \[T\], or"),
        ([(STATES, REWARDS * np.nan)], r"reward\[0\] of episode 0 is nan; .* finite: .* a mask"),
        ([(STATES, ["a", "b", "c"])], r"rewards of episode 0 have dtype <U1; they must be numbers"),
        ([(STATES, REWARDS[:2])], r"have shape \(4, 2\) and it has 2 steps; .* 2 or 3 entries"),
        ([(STATES, REWARDS, ACTIONS[:2])], r"actions of episode 0 have shape \(2,\) and it has 3"),
        ([(STATES[:1], REWARDS[:0])], r"episode 0 has no step; leave it out"),
        ([(STATES, REWARDS[:, None])], r"have shape \(3, 1\); they must be one number for each"),
        ([(STATES,)], r"episode 0 is a tuple of 1; it must be \(observations"),
        ([([[1], [1, 2]], [1.0])], r"observations of episode 0 are ragged"),
        ([({"image": 1}, REWARDS)], r"observations of episode 0 are a mapping of image; .*concat"),
        ([WHOLE | {"rewards": None, "outcome": [1, 2]}], r"outcome of .* shape \(2,\); it is one"),
        ([WHOLE | {"outcome": 2}], r"episode 0 has both rewards and an outcome; give one"),
        ([WHOLE | {"rewards": None, "outcome": np.nan}], r"^outcome of episode 0 is nan; "),
        ([[STATES, REWARDS]], r"episode 0 is a list; it must be a mapping or a tuple of arrays"),
        (WHOLE, r"this is one episode and a collection was expected; put it in a list"),
        (batch(rewards=[[1, 2], [1]]), r"are ragged.*: pad them and give a mask \[B, T\]"),
        (batch(mask=[[1, 0, 1], [1, 1, 1]]), r"the mask has holes; .*split episodes"),
        (batch(mask=[[1, 1], [1, 1]]), r"mask has shape \(2, 2\) and there are 2 .* to 3 steps"),
        (batch(lengths=[3, 4]), r"lengths are \[3, 4\] and there are 2 episodes, padded to 3"),
        (batch(lengths=[3]), r"lengths are \[3\] and there are 2 episodes"),
        (batch(rewards=None, outcome=[1, 2]), r"neither rewards \[B, T\] nor a mask"),
        ("log.npz", r"the episodes are a str; .* files, .* `synthetic-returns explain`"),
        (7, r"the episodes are a int; give a list of episodes"),
    ],
)
def test_what_is_no_episode_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        list(read_episodes(data))


def episodes(*observations: np.ndarray, **fields: Any) -> list[Episode]:
    return [
        read_episode({"observations": x, "rewards": np.ones(len(x) - 1)} | fields)
        for x in observations
    ]


def test_vectors_are_standardised():
    rng = np.random.default_rng(0)
    made = [rng.normal([1000, 0, 5], [2, 0.01, 0], (20, 3)) for _ in range(5)]
    form = read_format(episodes(*made))
    seen = np.concatenate([form.convert(e, "it").observation for e in episodes(*made)])
    assert seen.dtype == np.float32
    np.testing.assert_allclose(seen.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(seen.std(axis=0), [1, 1, 0], atol=1e-2)
    outlier = form.convert(episodes(np.full((2, 3), 1e9))[0], "it").observation
    assert np.abs(outlier).max() == 10


def test_bytes_and_names_of_states_stay_what_they_are():
    image = read_format(episodes(np.zeros((3, 9, 9, 1), np.uint8)))
    assert (image.dtype, image.kinds) == ("uint8", 0)
    names = read_format(episodes(np.array([0, 4, 2]), np.array([1, 1, 1, 1])))
    assert (names.dtype, names.kinds, names.max_episode_steps) == ("int32", 5, 4)
    amounts = read_format(episodes(np.array([0, -4, 2])))
    assert (amounts.dtype, amounts.kinds) == ("float32", 0)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"observations": np.zeros((4, 3))}, r"of it have shape \(3,\) each and .* have \(2,\)"),
        ({"actions": None}, r"actions of it are missing; .* have shape \(\) each"),
        ({"actions": np.zeros((3, 2))}, r"actions of it have shape \(2,\) each; those"),
        ({"actions": np.array([0, 3, 0])}, r"an action of it is 3 and actions from 0 to 2 are"),
    ],
)
def test_an_episode_of_another_kind_is_refused(other, message):
    form = read_format([read_episode(WHOLE)])
    with pytest.raises(ValueError, match=message):
        form.convert(read_episode(WHOLE | other), "it")


def test_a_state_that_was_never_seen_is_refused():
    form = read_format(episodes(np.array([0, 4, 2])))
    with pytest.raises(ValueError, match=r"an observation of it is 5 and whole numbers .*0 to 4"):
        form.convert(episodes(np.array([5, 0]))[0], "it")


def test_a_format_can_be_written_down():
    form = read_format(episodes(np.zeros((3, 2))))
    assert all(
        isinstance(x, int | str | bool | tuple | None) for x in dataclasses.asdict(form).values()
    )
