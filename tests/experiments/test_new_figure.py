"""A figure that only this file knows: an experiment, and a function that draws its results."""

import csv
import dataclasses

from synthetic_returns.experiments import run
from synthetic_returns.experiments.catalog import EXPERIMENTS
from synthetic_returns.experiments.experiment import EPISODIC, NONE, Experiment
from synthetic_returns.experiments.figures.curves import draw_curves
from synthetic_returns.experiments.figures.style import new_figure, save
from synthetic_returns.experiments.study import Study
from tests.experiments.fake_runs import fake_experiment


def test_a_study_is_drawn_from_its_runs(tmp_path, monkeypatch):
    # --- the study, all of it ---
    mine: Experiment = dataclasses.replace(
        EXPERIMENTS["chain"], name="mine", title="mine", seeds=1, arms=(EPISODIC, NONE), bars=()
    )

    def draw(results, out):
        figure = new_figure(2.6)
        draw_curves(figure.subplots(), results["mine"], "success", label="success", title="mine")
        return [save(figure, out / "mine.png")]

    study = Study("mine", "a figure of my own", (mine,), draw)

    # --- what `reproduce` does with it, but for the training ---
    monkeypatch.setattr(run, "EXPERIMENTS", {**EXPERIMENTS, "mine": mine})  # as the catalogue would
    fake_experiment(mine, tmp_path / "runs")
    (figure,) = run.write_results([study], runs=tmp_path / "runs", out=tmp_path / "out")
    assert figure.stat().st_size > 1000
    with (tmp_path / "out" / "summary.csv").open() as file:
        assert {row["arm"] for row in csv.DictReader(file)} == {"episodic", "none"}
