"""What results look like in a notebook."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from synthetic_returns.credit.explanation import Explanation
from synthetic_returns.experiments.experiment import EPISODIC
from synthetic_returns.experiments.studies.chain import CHAIN
from synthetic_returns.training.runs import Run
from synthetic_returns.utils.notebook import bars_svg, facts_table, line_svg
from synthetic_returns.viewer.inline import picture_source
from synthetic_returns.viewer.trace_picture import draw_trace_picture
from tests.experiments.fake_runs import fake_run
from tests.viewer.made_up import made_up, one_of_each_kind

NASTY = "</table><script>alert(1)</script>"


def test_a_recording_is_a_picture_with_its_return_and_what_its_credit_means():
    shown = made_up()._repr_html_()
    assert shown.count("data:image/png;base64,") == 1
    assert "30 steps: return 5." in shown
    assert "a key earns 1.5" in shown
    assert "the largest is at step 7" in shown


@pytest.mark.parametrize("dark", [False, True])
def test_the_colours_of_pictures_are_those_that_were_drawn(dark):
    """Two pictures of a page have the same ground, and the bars their colour."""
    spiky = made_up(terms={"c": np.random.default_rng(0).normal(size=31)})
    drawn = draw_trace_picture(spiky, width=1180, height=240, dark=dark).astype(int)
    source = picture_source(spiky, (1180, 240), dark=dark)
    shown = Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))).convert("RGB")
    assert np.abs(np.asarray(shown, int) - drawn).max() <= 20  # where edges are smoothed
    for colour in {tuple(drawn[0, 0]), tuple(drawn[120, 600])}:
        there = np.all(drawn == colour, axis=-1)
        assert np.abs(np.asarray(shown, int)[there] - colour).max() <= 2


def test_an_explanation_draws_its_lines_and_names_all_else():
    shown = Explanation(one_of_each_kind(6), "worth")._repr_html_()
    assert shown.count("<svg") == 4  # three lines and a gate
    assert "worth (the credit)" in shown
    assert "actions, 6 x 3" in shown
    assert "pairs, 6 x 6" in shown


def test_a_run_tells_its_task_its_result_and_its_curve(tmp_path):
    path = fake_run(CHAIN, EPISODIC, 0, tmp_path, most_traces=0)
    shown = Run.open(path)._repr_html_()
    for words in ("chain", "episodic", "finished: ", "<polyline", "success"):
        assert words in shown, words
    (path / "summary.json").unlink()
    assert "not finished" in Run.open(path)._repr_html_()


def test_text_from_outside_stays_text():
    assert "<script" not in bars_svg(np.ones(3), NASTY) + line_svg(np.ones(2), np.ones(2), NASTY)
    assert "<script" not in facts_table({NASTY: ""})
    assert "<script" not in made_up(player=NASTY)._repr_html_()


@pytest.mark.parametrize("values", [np.zeros(3), np.array([np.nan, 1.0]), np.array([-2.0, 4.0])])
def test_bars_stay_inside_the_drawing(values):
    drawn = bars_svg(values, "x")
    for y, height in re.findall(r'<rect x="[^"]*" y="([^"]*)" [^>]*height="([^"]*)"', drawn):
        assert float(y) >= 0
        assert float(y) + float(height) <= 64
