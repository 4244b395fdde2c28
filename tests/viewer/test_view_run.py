"""The command ``view``: from a run to a page, an animation and a server."""

import threading
import urllib.error
import urllib.request
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest
from PIL import Image

from synthetic_returns.agents.impala.learner import Learner
from synthetic_returns.cli import main
from synthetic_returns.commands import view as command
from synthetic_returns.credit.explainer import Rollout
from synthetic_returns.envs.registry import TASKS
from synthetic_returns.presets import preset
from synthetic_returns.viewer.animation import write_animation
from synthetic_returns.viewer.opened_run import OpenedRun
from synthetic_returns.viewer.playing import play, record
from synthetic_returns.viewer.serving import page_server
from synthetic_returns.viewer.shown_terms import shown_terms
from synthetic_returns.viewer.view_run import record_run
from tests.viewer.made_up import made_up


def frames_in(path) -> int:
    with Image.open(path) as image:
        return image.n_frames  # pyright: ignore[reportAttributeAccessIssue]


def test_the_page_and_the_animation_of_a_run(chain_run, tmp_path, capsys):
    gif = tmp_path / "episode.gif"
    main(["view", str(chain_run), "--episodes", "2", "--gif", str(gif)])
    said = capsys.readouterr().out
    assert f"{chain_run}/view.html" in said
    page = (chain_run / "view.html").read_text()
    assert "visit a trigger state" in page
    assert "decisive" in page  # the bars of the Chain
    assert frames_in(gif) == 6


def test_recordings_are_sorted_explained_and_have_the_frames_of_their_states(chain_run):
    recorded = record_run(chain_run, 5)
    returns = [recording.total for recording in recorded.recordings]
    assert returns == sorted(returns, reverse=True)
    opened = OpenedRun.open(chain_run)
    _, agent, explainer = opened.load()
    assert explainer is not None
    played = play(opened.config.task, agent, explainer, 5)
    explanation = eqx.filter_jit(explainer.explain)(Rollout(played.timestep))
    recording = record(opened.config.task, played)[0]
    assert recording.frames is not None
    assert recording.place is not None
    assert list(recording.terms) == ["c", "g", "b", "r_hat"]
    assert recording.credit == "c"
    shown = {term["name"]: term["values"] for term in shown_terms(recording)}
    row = next(
        i for i in range(5)
        if np.allclose(np.asarray(explanation.paid)[:, i], shown["c"], atol=1e-6)
    )  # fmt: skip
    # What was said in a state is shown where its reward arrives.
    r_hat = np.asarray(explanation.terms["r_hat"].values)
    np.testing.assert_allclose(shown["r_hat"][1:], r_hat[:-1, row], rtol=1e-5)
    assert np.isnan(shown["r_hat"][0])
    # In the frame, the agent (blue) is where the observation says.
    codes = np.asarray(played.timestep.observation)[:, row].argmax(axis=1)
    np.testing.assert_array_equal(recording.place, codes)
    for step in range(4):
        assert recording.frames[step][1, codes[step]].tolist() == [60, 110, 255]


def test_half_of_the_episodes_show_mistakes_and_credit_is_compared_with_random_play(chain_run):
    recordings = record_run(chain_run, 5).recordings
    players = [recording.player for recording in recordings]
    assert players.count("the agent") == 3
    assert all(x == "random play" or "% random" in x for x in players if x != "the agent")
    reference = recordings[0].reference
    assert reference is not None
    assert len(reference) == len(recordings[0])
    for recording in recordings:
        np.testing.assert_array_equal(np.asarray(recording.reference), reference)
        assert recording.truth is not None


@pytest.mark.parametrize("name", ["umbrella", "key-to-door-chained"])
def test_tasks_of_every_kind_can_be_recorded(name):
    """One with a random key in its state, and one with phases; all others are like these."""
    smaller: Any = {"length": 3} if name == "umbrella" else {"distractor_steps": 1}
    config = preset(name, **smaller)
    agent = Learner(config).init(jax.random.key(0)).agent
    (recording,) = record(config.task, play(config.task, agent, None, 1))
    assert recording.frames is not None
    assert recording.terms == {}
    assert recording.credit is None
    assert set(recording.events) == set(TASKS[name].events)


def test_an_animation_needs_frames_and_a_format(tmp_path):
    with pytest.raises(ValueError, match=r"ends in '\.mp4'; use one of \.gif"):
        write_animation(tmp_path / "x.mp4", made_up())
    with pytest.raises(ValueError, match="no frames"):
        write_animation(tmp_path / "x.gif", made_up(frames=None))
    assert frames_in(write_animation(tmp_path / "x.png", made_up(steps=4))) == 5


def test_only_the_page_is_served(tmp_path):
    (tmp_path / "view.html").write_text("the page")
    (tmp_path / "secret").write_text("secret")
    with page_server(tmp_path / "view.html") as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            assert server.server_address[0] == "127.0.0.1"
            address = f"http://127.0.0.1:{server.server_address[1]}"
            with urllib.request.urlopen(f"{address}/") as answer:
                assert answer.read() == b"the page"
            with pytest.raises(urllib.error.HTTPError, match="404") as refused:
                urllib.request.urlopen(f"{address}/secret")
            refused.value.close()
        finally:
            server.shutdown()
            thread.join()


def test_open_opens_the_file(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(command.webbrowser, "open", opened.append)
    command.show_page(tmp_path / "view.html", open_it=True, serve=False)
    assert opened == [(tmp_path / "view.html").as_uri()]
