import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.data.episode import Episode
from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.envs.spec import EventMark
from synthetic_returns.training.traces import Trace, drift
from synthetic_returns.viewer.arrival import on_arrival, reward_over, values_on_arrival
from synthetic_returns.viewer.event_style import event_styles, marked_steps
from synthetic_returns.viewer.frames import frame_sheet, frames_of_observations
from synthetic_returns.viewer.recording import Recording
from synthetic_returns.viewer.shown_terms import line_charts, pooled, shown_terms
from tests.viewer.made_up import made_up, one_of_each_kind


def test_what_is_said_about_leaving_a_state_is_shown_where_the_reward_arrives():
    np.testing.assert_array_equal(on_arrival(np.array([1.0, 2.0, np.nan])), [np.nan, 1, 2])


def test_a_trace_becomes_a_recording():
    x = np.arange(3.0)
    terms = {"z": Term(x + 1, "last letter"), "a": Term(x + 2, "first", "gate", "leaving")}
    trace = Trace(9, np.zeros((3, 2)), x, Explanation(terms, "z"), {"key": x > 1})
    recording = Recording.from_trace(trace)
    z, a = shown_terms(recording)  # in their order, not in that of the alphabet
    assert (z["name"], z["label"], z["kind"], a["kind"]) == ("z", "last letter", "line", "gate")
    np.testing.assert_array_equal(z["values"], [1, 2, 3])
    np.testing.assert_array_equal(a["values"], [np.nan, 2, 3])
    assert recording.credit == "z"
    assert recording.total == 3


@pytest.mark.parametrize("terminal", [False, True])
def test_an_episode_of_the_wrapper_becomes_a_recording(terminal):
    """With an observation, an explanation and a frame of the terminal state, and without."""
    observation, reward = np.zeros((2 + terminal, 4, 4), np.uint8), np.array([0.5, 2.0])
    episode = Episode(observation, reward, discount=np.array([1.0, 0.0]))
    x = jnp.array([1.0, -1.0, 0.0][: 2 + terminal])
    frames = np.arange(len(x) * 4 * 4 * 3, dtype=np.uint8).reshape(-1, 4, 4, 3)
    terms = {
        "c": Term(x, "c"),
        "g": Term(x + 1, "g", "gate", "leaving"),
        "a": Term(jnp.stack([x, -x], axis=1), "a", "actions", "leaving"),
        "p": Term(jnp.ones((len(x), len(x))), "p", "pairs"),
    }
    explanation = Explanation(terms, "c")
    recording = Recording.from_episode(episode, explanation, frames=frames)
    np.testing.assert_array_equal(recording.reward, [0, 0.5, 2])
    shown = {term["name"]: term["values"] for term in shown_terms(recording)}
    np.testing.assert_array_equal(shown["c"], [1, -1, 0])
    np.testing.assert_array_equal(shown["g"], [np.nan, 2, 0])
    np.testing.assert_array_equal(shown["a"], [[np.nan] * 2, [1, -1], [-1, 1]])
    assert shown["p"].shape == (3, 3)
    np.testing.assert_array_equal(recording.frames, frames[[0, 1, 2 if terminal else 1]])
    assert Recording.from_episode(episode, explanation).frames is None
    assert Recording.from_episode(episode, Explanation()).credit is None


def test_a_plain_array_is_a_line_and_the_first_term_is_the_credit():
    recording = Recording(np.zeros(3), {"gain": np.ones(3), "other": np.zeros(3)})
    assert recording.credit == "gain"
    assert [term["label"] for term in shown_terms(recording)] == ["gain", "other"]
    assert Recording(np.zeros(3)).credit is None


def test_predictions_of_several_rewards_are_shown_over_their_sum():
    reward = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(reward_over(reward, 1), [np.nan, 1, 2, 3, 4])
    np.testing.assert_array_equal(reward_over(reward, 2), [np.nan, 3, 5, 7, 4])
    # The states 0 and 1 share what is said of 0, and 2 and 3 what is said of 2.
    np.testing.assert_array_equal(reward_over(reward, 2, 2), [np.nan, 3, 3, 7, 7])
    line = np.zeros(5)
    terms = {
        "c": line,
        "one": Term(line, "one", "line", "leaving"),
        "two": Term(line, "two", "line", "leaving", steps=2),
        "of_state": line,
    }
    one, two, of_state = line_charts(Recording(reward, terms))
    assert (one["title"], one["lines"]) == ("reward", ["one"])
    assert (two["title"], two["lines"]) == ("reward of the next 2 steps", ["two"])
    np.testing.assert_array_equal(two["bars"], [np.nan, 3, 5, 7, 4])
    assert (of_state["bars"], of_state["lines"]) == (None, ["of_state"])


def test_large_matrices_keep_what_stands_out():
    pairs = np.zeros((10, 10))
    pairs[9, 4], pairs[3, 3], pairs[3, 2] = -2.0, 0.5, np.nan
    small = pooled(pairs, 3)  # cells of the states 0-2, 3-5 and 6-9
    assert small[2, 1] == -2
    assert small[1, 1] == 0.5
    assert np.count_nonzero(small) == 2


def test_one_number_for_each_state_whatever_the_kind():
    terms = one_of_each_kind(4)
    np.testing.assert_allclose(terms["choice"].per_state(), 2 * np.abs(np.sin(np.arange(4))))
    np.testing.assert_allclose(terms["links"].per_state(), [0, 5 / 9, 6 / 9, 0])
    assert values_on_arrival(terms["worth"])[0] == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"terms": {"c": np.zeros(2)}}, r"terms\['c'\] has shape \(2,\) and reward has \(3,\)"),
        (
            {"terms": {"c": Term(np.zeros(3), "c", "actions")}},
            r"kind actions must have shape \(3, actions\)",
        ),
        ({"terms": {"c": Term(np.zeros((3, 2)), "c", "pairs")}}, r"must have shape \(3, 3\)"),
        ({"credit": "d"}, "credit is 'd' and the terms are c; name one of them"),
        ({"events": {"key": np.zeros(1)}}, r"events\['key'\] has shape \(1,\)"),
        ({"frames": np.zeros((3, 2, 2, 3))}, r"frames are float64.*uint8 \[n, H, W, 3\]"),
        ({"frames": np.zeros((2, 2, 2, 3), np.uint8)}, "2 frames and 3 states"),
        ({"reward": np.zeros((3, 1))}, r"reward has shape \(3, 1\)"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Recording(**{"reward": np.zeros(3), "terms": {"c": np.zeros(3)}} | fields)


def test_success_is_marked_only_where_it_comes_alone():
    events = {
        "success": np.array([0, 0.5, 0, 1]),
        "catch": np.array([0, 1, 0, 0]),
        "miss": np.zeros(4),
    }
    assert marked_steps(events) == {"catch": [1], "success": [3]}


def test_events_without_a_mark_get_one_of_their_own():
    marks = {"key": EventMark("diamond", "gold"), "wall": EventMark("diamond", "blue")}
    names = ["key", "success", *(f"turn_{number}" for number in range(16))]
    styles = event_styles(names, marks)
    assert styles["key"].shape == "diamond"
    assert styles["success"].shape == "star"
    assert len({*styles.values()}) == len(names)
    assert event_styles(["wall"], marks)["wall"] not in styles.values()


@pytest.mark.parametrize(
    ("observation", "shape"),
    [
        (np.zeros((4, 7, 5, 3), np.float32), (4, 7, 5, 3)),
        (np.zeros((4, 7, 5), np.uint8), (4, 7, 5, 3)),
        (np.zeros((4, 84, 84, 4), np.uint8), (4, 84, 84, 3)),  # a stack of grey frames
        (np.zeros((4, 18), np.float32), (4, 1, 18, 3)),
    ],
)
def test_observations_become_pictures(observation, shape):
    frames = frames_of_observations(observation)
    assert frames is not None
    assert (frames.shape, frames.dtype) == (shape, np.uint8)


def test_of_stacked_frames_the_newest_is_shown_and_floats_are_scaled():
    stack = np.stack([np.full((1, 2, 2), i, np.uint8) for i in range(4)], axis=-1)
    assert frames_of_observations(stack) is not None
    assert np.unique(frames_of_observations(stack)).tolist() == [3]  # pyright: ignore
    assert np.unique(frames_of_observations(np.ones((1, 2, 2)))).tolist() == [255]  # pyright: ignore
    assert frames_of_observations(np.array(["no", "picture"])) is None


def test_the_sheet_holds_every_frame_exactly():
    import base64
    import io

    from PIL import Image

    frames = made_up().frames
    assert frames is not None
    sheet = frame_sheet(frames)
    data = base64.b64decode(sheet["source"].split(",", 1)[1])
    pixels = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    for step in range(len(frames)):
        y, x = divmod(step, sheet["columns"])
        height, width = sheet["height"], sheet["width"]
        cell = pixels[y * height : (y + 1) * height, x * width : (x + 1) * width]
        np.testing.assert_array_equal(cell, frames[step])


def test_drift_is_relative_and_needs_the_same_states():
    def trace(c, observation=0.0):
        zeros = np.zeros(2)
        explanation = Explanation({"c": Term(np.array(c), "c")}, "c") if c else Explanation()
        return Trace(0, zeros + observation, zeros, explanation, {})

    assert drift(trace([0.0, 0.0]), trace([3.0, 4.0])) == pytest.approx(1)
    assert drift(trace([3.0, 4.0]), trace([3.0, 4.0])) == 0
    assert np.isnan(drift(trace([1.0, 1.0]), trace([1.0, 1.0], observation=1.0)))
    assert np.isnan(drift(trace([]), trace([])))
