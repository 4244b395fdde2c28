"""Every study: its flags are understood, its figures drawn, its runs shared where they can be."""

import dataclasses
import shutil

import matplotlib.image
import numpy as np
import pytest

from synthetic_returns.commands import train as train_command
from synthetic_returns.credit.advance.parts import PARTS
from synthetic_returns.experiments.catalog import EXPERIMENTS, FIGURES, STUDIES, find_studies
from synthetic_returns.experiments.experiment import Arm, unique_jobs
from synthetic_returns.experiments.run import write_results
from synthetic_returns.experiments.studies import parts
from synthetic_returns.experiments.studies.ablation import REMOVED
from synthetic_returns.experiments.studies.anchors import read_published
from synthetic_returns.experiments.studies.catch import CATCH_DELAYED_20
from synthetic_returns.experiments.studies.demo import STUDY as DEMO
from synthetic_returns.experiments.studies.demo import demo_folder
from synthetic_returns.experiments.study import chosen, with_arms
from synthetic_returns.utils.tables import read_csv
from tests.experiments.fake_runs import fake_experiment

FILES = {
    "chain": ["chain.png"],
    "catch": ["catch.png", "catch-runs.png"],
    "key-to-door": ["key-to-door.png", "key-to-door-variants.png"],
    "untuned": ["untuned.png"],
    "ladder": ["ladder.png"],
    "unharmed": ["unharmed.png"],
    "anchors": ["anchors.png"],
    "impala": ["impala.png"],
    "paper": ["paper.png"],
    "parts": ["parts.png"],
    "ablation": ["ablation.png"],
    "seeds": ["seeds.png"],
    "stability": ["stability.png"],
    "skiing": ["skiing.png"],
    "pong": ["pong.png"],
    "demo": ["demo.png"],
}


@pytest.fixture
def configs(monkeypatch, tmp_path):
    """Parses the jobs of an experiment as the training processes would, without training."""
    found = []
    monkeypatch.setattr(
        "synthetic_returns.training.trainer.train", lambda config, **_: found.append(config)
    )
    monkeypatch.setattr("synthetic_returns.commands.show.print_summaries", lambda _: None)

    def parse(experiment):
        found.clear()
        for job in dataclasses.replace(experiment, seeds=1).jobs(tmp_path):
            train_command.main(job.command()[4:])
        return list(found)

    return parse


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_arms_differ_in_what_they_say_and_have_equal_budgets(configs, name):
    experiment = EXPERIMENTS[name]
    parsed = configs(experiment)
    assert len(set(parsed)) == len(parsed) == len(experiment.arms)
    for config, arm in zip(parsed, experiment.arms, strict=True):
        assert config.task_name == experiment.task
        assert config.steps == experiment.steps
        assert config.preset == arm.preset
        assert config.has_credit == (arm.name != "none")
        assert config.task == parsed[0].task


def test_without_synthetic_returns_delayed_catch_gets_its_best_discount(configs):
    with_sr, without = configs(CATCH_DELAYED_20)
    assert (with_sr.agent.discount, without.agent.discount) == (0.9, 0.99)


def test_an_ablated_arm_differs_in_the_options_of_the_learner_alone(configs):
    full, *ablated = configs(EXPERIMENTS["ablation-key-to-door"])
    assert len(ablated) == len(REMOVED)
    for config in ablated:
        assert config.credit != full.credit
        assert config.changed(credit=full.credit) == full


def test_every_part_is_left_out_once(configs):
    assert tuple(parts.WITHOUT) == PARTS
    whole, *ablated = configs(EXPERIMENTS["parts-catch-20"])
    assert [config.credit.without for config in ablated[:-1]] == [(part,) for part in PARTS]
    assert (whole.credit.replay.same_age, ablated[-1].credit.replay.same_age) == (True, False)


def test_runs_that_two_experiments_share_are_trained_once(tmp_path):
    shared = [EXPERIMENTS[name] for name in ("untuned-key-to-door", "seeds-key-to-door")]
    jobs = unique_jobs(shared, tmp_path)
    assert len(jobs) == 3 * 4 + (20 - 4)
    assert len({job.out for job in jobs}) == len(jobs)
    # Another budget is another run.
    outs = [
        {job.out for job in EXPERIMENTS[name].jobs(tmp_path)}
        for name in ("key-to-door", "stability-key-to-door")
    ]
    assert not set.intersection(*outs)


def test_experiments_of_a_study_can_be_run_one_by_one():
    whole = [STUDIES["untuned"], STUDIES["ladder"]]
    (ladder,) = chosen(whole, ["untuned-two-keys"])
    assert ladder.name == "ladder"
    assert [experiment.name for experiment in ladder.experiments] == ["untuned-two-keys"]
    assert {*ladder.also, *ladder.experiments} == {*STUDIES["ladder"].experiments}
    with pytest.raises(ValueError, match="no experiment 'two-keys'; did you mean"):
        chosen(whole, ["two-keys"])


def test_single_arms_of_a_study_can_be_run():
    (ladder,) = with_arms([STUDIES["ladder"]], ["advance"])
    assert {arm.name for e in ladder.experiments for arm in e.arms} == {"advance"}
    assert {*ladder.also} == {*STUDIES["ladder"].experiments}
    with pytest.raises(ValueError, match="no arm 'advanced'; did you mean"):
        with_arms([STUDIES["ladder"]], ["advanced"])
    with pytest.raises(ValueError, match="'chain' need the runs of all arms"):
        with_arms([STUDIES["chain"]], ["none"])


def test_arms_that_are_not_run_again_keep_their_record(tmp_path):
    ladder = STUDIES["ladder"].with_seeds(1)
    runs, out = tmp_path / "runs", tmp_path / "out"
    for experiment in ladder.experiments:
        fake_experiment(experiment, runs)
    write_results([ladder], runs=runs, out=out)
    before = (out / "table.md").read_text()
    for experiment in ladder.experiments:
        for arm in ("none", "oracle"):
            shutil.rmtree(experiment.run_path(runs, Arm(arm, "", ""), 0))
    write_results(with_arms([ladder], ["advance"]), runs=runs, out=out)
    assert (out / "table.md").read_text() == before


@pytest.mark.parametrize("study", [*STUDIES.values(), DEMO], ids=lambda study: study.name)
def test_every_study_draws_its_figures_and_records_every_seed(tmp_path, study):
    study = study.with_seeds(2)
    for experiment in study.experiments:
        fake_experiment(experiment, tmp_path / "runs")
    out = tmp_path / "out"
    figures = write_results([study], runs=tmp_path / "runs", out=out)
    assert [path.name for path in figures] == FILES[study.name]
    for path in figures:
        height, width, _ = matplotlib.image.imread(path).shape
        assert width == 1190
        assert height > 300
    arms = [(e.name, arm.name) for e in study.experiments for arm in e.arms]
    rows = read_csv(out / "summary.csv")
    assert [(r["experiment"], r["arm"]) for r in rows] == [arm for arm in arms for _ in range(2)]
    for experiment, arm in arms:
        assert all((out / experiment / f"{arm}-seed{seed}.csv").exists() for seed in range(2))
    assert len((out / "table.md").read_text().splitlines()) == 2 + len(arms)


@pytest.mark.parametrize("study", FIGURES, ids=lambda study: study.name)
def test_the_quick_version_is_smaller_and_still_draws_the_main_figure(tmp_path, study):
    quick = study.quick()
    for experiment in quick.experiments:
        whole = EXPERIMENTS[experiment.name]
        assert experiment.steps <= whole.steps
        assert experiment.seeds == 2 < whole.seeds
        fake_experiment(experiment, tmp_path / "runs")
    figures = write_results([quick], runs=tmp_path / "runs", out=tmp_path)
    assert [path.name for path in figures] == FILES[study.name][:1]


def test_experiments_that_are_not_run_again_are_drawn_from_their_record(tmp_path):
    ladder = STUDIES["ladder"].with_seeds(1)
    runs, out = tmp_path / "runs", tmp_path / "out"
    for experiment in ladder.experiments:
        fake_experiment(experiment, runs)
    whole = matplotlib.image.imread(write_results([ladder], runs=runs, out=out)[0])
    first = ladder.experiments[0].name
    for experiment in ladder.experiments[1:]:
        shutil.rmtree(runs / experiment.name)  # as on another machine
    again = matplotlib.image.imread(write_results(chosen([ladder], [first]), runs=runs, out=out)[0])
    assert again.shape == whole.shape
    assert np.mean(np.abs(again - whole)) < 1e-3  # five digits of each number are recorded


def test_the_ours_beside_the_papers_settings_are_drawn_if_they_were_run(tmp_path):
    paper = STUDIES["paper"].with_seeds(1)
    for experiment in paper.experiments:
        fake_experiment(experiment, tmp_path / "runs")
    alone = write_results([paper], runs=tmp_path / "runs", out=tmp_path / "alone")[0].read_bytes()
    for experiment in paper.also:
        fake_experiment(experiment, tmp_path / "runs")
    together = write_results([paper], runs=tmp_path / "runs", out=tmp_path / "both")[0].read_bytes()
    assert alone != together


def test_studies_are_found_by_name():
    assert find_studies("all") == FIGURES
    assert find_studies("ablation") == (STUDIES["ablation"],)
    with pytest.raises(ValueError, match="did you mean 'catch'"):
        find_studies("cacth")


def test_the_demo_goes_on_with_an_interrupted_folder_and_else_takes_the_next(tmp_path):
    first = demo_folder(tmp_path)
    assert first.name == "demo-001"
    assert demo_folder(tmp_path) == first
    (first / "demo.png").touch()
    assert demo_folder(tmp_path).name == "demo-002"


def test_published_numbers_are_of_experiments_that_are_drawn_and_have_a_source():
    study = STUDIES["anchors"]
    known = {e.name for e in (*study.experiments, *study.also)}
    rows = read_published()
    assert {row["experiment"] for row in rows} == known
    for row in rows:
        assert row["source"]
        assert row["env_steps"] > 0
        assert (row["value"] != row["value"]) == (row["what"] == "budget")
