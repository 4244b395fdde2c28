import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.episodes import Episode
from synthetic_returns.credit.old_explanation import Explanation
from synthetic_returns.training.traces import Trace, drift
from synthetic_returns.viewer.event_style import event_styles, marked_steps
from synthetic_returns.viewer.frames import frame_sheet, frames_of_observations
from synthetic_returns.viewer.recording import Recording, on_arrival
from tests.viewer.made_up import made_up


def test_what_is_said_about_leaving_a_state_is_shown_where_the_reward_arrives():
    np.testing.assert_array_equal(on_arrival(np.array([1.0, 2.0, np.nan])), [np.nan, 1, 2])


def test_a_trace_becomes_a_recording():
    x = np.arange(3.0)
    trace = Trace(9, np.zeros((3, 2)), x, x + 1, x + 2, x + 3, {"key": x > 1})
    recording = Recording.from_trace(trace)
    np.testing.assert_array_equal(recording.contribution, [1, 2, 3])
    np.testing.assert_array_equal(recording.gate, [np.nan, 2, 3])
    np.testing.assert_array_equal(recording.baseline, [np.nan, 3, 4])
    assert recording.total == 3


def test_an_episode_of_the_wrapper_becomes_a_recording():
    episode = Episode(np.zeros((2, 4, 4), np.uint8), np.array([0.5, 2.0]))
    x = jnp.array([1.0, -1.0])
    frames = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)
    recording = Recording.from_episode(
        episode, Explanation(c=x, g=x + 1, b=x + 2, r_hat=x + 3), frames=frames
    )
    np.testing.assert_array_equal(recording.reward, [0, 0.5, 2])
    np.testing.assert_array_equal(recording.contribution, [1, -1, 0])
    np.testing.assert_array_equal(recording.gate, [np.nan, 2, 0])
    np.testing.assert_array_equal(recording.baseline, [np.nan, 3, 1])
    np.testing.assert_array_equal(recording.predicted, [np.nan, 4, 2])
    np.testing.assert_array_equal(recording.frames, frames[[0, 1, 1]])
    assert Recording.from_episode(episode, Explanation(x, x, x, x)).frames is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"contribution": np.zeros(2)}, r"contribution has shape \(2,\) and reward has \(3,\)"),
        ({"gate": np.zeros(4)}, r"gate has shape \(4,\)"),
        ({"events": {"key": np.zeros(1)}}, r"events\['key'\] has shape \(1,\)"),
        ({"frames": np.zeros((3, 2, 2, 3))}, r"frames are float64.*uint8 \[n, H, W, 3\]"),
        ({"frames": np.zeros((2, 2, 2, 3), np.uint8)}, "2 frames and 3 states"),
        ({"reward": np.zeros((3, 1))}, r"reward has shape \(3, 1\)"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Recording(**{"reward": np.zeros(3), "contribution": np.zeros(3)} | fields)


def test_success_is_marked_only_where_it_comes_alone():
    events = {
        "success": np.array([0, 0.5, 0, 1]),
        "catch": np.array([0, 1, 0, 0]),
        "miss": np.zeros(4),
    }
    assert marked_steps(events) == {"catch": [1], "success": [3]}


def test_unknown_events_get_marks_of_their_own():
    styles = event_styles(["key", "left_turn", "right_turn"])
    assert styles["key"].shape == "diamond"
    assert styles["left_turn"] != styles["right_turn"]


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
        return Trace(0, zeros + observation, zeros, np.array(c), zeros, zeros, {})

    assert drift(trace([0.0, 0.0]), trace([3.0, 4.0])) == pytest.approx(1)
    assert drift(trace([3.0, 4.0]), trace([3.0, 4.0])) == 0
    assert np.isnan(drift(trace([1.0, 1.0]), trace([1.0, 1.0], observation=1.0)))
