"""The report: what it says, and that it is readable."""

import dataclasses
import json
import re

import numpy as np
import pytest

from synthetic_returns.cli import main
from synthetic_returns.credit.explanation import Explanation
from synthetic_returns.credit.none import NoCredit
from synthetic_returns.experiments.experiment import EPISODIC, NONE
from synthetic_returns.experiments.studies.chain import CHAIN
from synthetic_returns.experiments.studies.key_to_door import KEY_TO_DOOR
from synthetic_returns.presets import preset
from synthetic_returns.report.arms import group
from synthetic_returns.report.chart import Bundle, draw_chart
from synthetic_returns.report.credit_quality import CreditQuality
from synthetic_returns.report.published import find_experiment, published
from synthetic_returns.report.report import read_records, write_report
from synthetic_returns.training.traces import Trace
from tests.experiments.fake_runs import fake_experiment, fake_run
from tests.viewer.browser import Visit, open_browser
from tests.viewer.made_up import one_of_each_kind
from tests.viewer.test_page import NASTY


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two seeds of two arms of the Chain and of Key-to-Door."""
    root = tmp_path_factory.mktemp("runs")
    for experiment in (CHAIN, KEY_TO_DOOR):
        fake_experiment(dataclasses.replace(experiment, seeds=2), root)
    return root


@pytest.fixture(scope="module")
def page(folder):
    records = read_records([folder / "chain", folder / "key-to-door"])
    quality = CreditQuality("the peak is on the key", 0.77, 0.95, "share", "100 episodes")
    measured = [(next(r for r in records if "key" in str(r.opened.path)), quality)]
    return write_report(records, measured, folder / "report.html")


def test_runs_are_grouped_by_task_and_by_all_settings_but_the_seed(folder):
    chain, key = group(read_records([folder / "chain", folder / "key-to-door"]))
    assert [(arm.label, len(arm.runs)) for arm in chain.arms] == [("episodic", 2), ("no credit", 2)]
    assert [arm.number for arm in key.arms] == [0, 1]
    (alone,) = group(read_records([folder / "chain" / "none-seed0"]))
    assert [arm.number for arm in alone.arms] == [1]  # blue even where there is no orange


def test_the_report_says_everything(page):
    text = page.read_text()
    for words in (
        "2 of 2",
        "better than no credit",
        "<td>1.00</td>",  # the probability of improvement: both seeds are better than both others
        "success 1 at 3e6",  # the paper's Chain
        "door 0.57 at 4e6 (Ni et al. 2022)",
        "drift of the credit",
        "steps per second",
        "77.0%",
        "does not hold",
        "synthetic-returns",
    ):
        assert words in text, words


def test_it_is_readable_everywhere(page, tmp_path):
    with open_browser() as browser:
        for width in (1280, 390):
            for scheme in ("light", "dark"):
                with Visit(browser, page, width=width, scheme=scheme) as visit:
                    visit.tab.screenshot(path=tmp_path / "report.png", full_page=True)
                    assert visit.tab.evaluate("document.documentElement.scrollWidth") <= width
                    assert visit.said == []
                    assert visit.fetched == []
                    charts = visit.tab.locator("svg[role=img]").all()
                    assert len(charts) >= 6
                    assert all(chart.get_attribute("aria-label") for chart in charts)
                    pictures = visit.tab.locator("img").all()
                    assert all("largest is at step" in x.get_attribute("alt") for x in pictures)
                    if (width, scheme) == (1280, "light"):
                        assert visit.tab.pdf()[:4] == b"%PDF"


@pytest.mark.parametrize("name", [None, "worth", "choice", "links"])
def test_the_credit_of_any_method_is_reported(tmp_path, name):
    """Whatever its terms are called, of any kind, and none at all."""
    path = fake_run(CHAIN, EPISODIC, 0, tmp_path)
    explanation = Explanation(one_of_each_kind(11), name) if name else Explanation()
    for file in (path / "traces").iterdir():
        dataclasses.replace(Trace.load(file), explanation=explanation).save(file)
    page = write_report(read_records([path]), [], tmp_path / "report.html").read_text()
    label = explanation.terms[name].label if name else "reward"
    assert f"{label} over one episode of 11 states; the largest is at step" in page


def test_text_from_outside_stays_text(tmp_path):
    path = fake_run(CHAIN, EPISODIC, 0, tmp_path)
    document = json.loads((path / "config.json").read_text())
    document |= {"command": ["train", NASTY], "version": NASTY}
    document["config"]["preset"] = NASTY
    (path / "config.json").write_text(json.dumps(document))
    nasty = path.rename(path.with_name("<img src=x onerror=alert(1)>"))
    page = write_report(read_records([nasty]), [], tmp_path / "report.html").read_text()
    assert not re.search("<script|<img src=x|<!--", page)
    assert "&lt;img src=x onerror" in page


def test_the_mean_has_an_interval_over_the_seeds():
    steps = np.arange(1, 6) * 100.0
    curves = tuple((steps, np.full(5, value)) for value in (0.0, 1.0, 2.0))
    _, mean, low, high = Bundle("a", 0, curves).mean_and_interval()
    assert np.allclose(mean, 1)
    assert 0 <= low[0] < 0.5
    assert 1.5 < high[0] <= 2
    assert draw_chart("nothing", [Bundle("a", 0, ((steps, np.full(5, np.nan)),))]) is None


def test_a_seed_that_ends_early_ends_the_mean():
    whole, short = np.arange(1, 11) * 10.0, np.arange(1, 6) * 10.0
    grid, *_ = Bundle("a", 0, ((whole, whole), (short, short))).mean_and_interval()
    assert (grid[0], grid[-1]) == (10, 50)


def test_the_papers_number_belongs_to_the_papers_task():
    assert published(preset("catch-delayed")) == "return 20 at 6e7"
    assert published(preset("catch-delayed").changed(credit=NoCredit())) == "return 13 at 2e8"
    assert published(preset("catch-delayed", runs=7)) == ""
    found = find_experiment(preset("key-to-door", distractor_steps=250))
    assert found is not None
    assert found.name == "key-to-door-250"


def test_the_command_measures_prints_and_writes(chain_run, capsys, monkeypatch):
    quality = CreditQuality("q", 1.0, 0.95, "share", "100 episodes")
    monkeypatch.setattr("synthetic_returns.report.report.credit_quality", lambda *_: quality)
    main(["report", str(chain_run)])
    said = capsys.readouterr().out
    assert f"{chain_run}: q: 100.0%, required 95.0%, holds (100 episodes)" in said
    assert f"{chain_run}/report.html" in said
    assert "100.0%" in (chain_run / "report.html").read_text()


def test_arms_with_and_without_have_their_names(tmp_path):
    for arm in (EPISODIC, NONE):
        fake_run(CHAIN, arm, 0, tmp_path)
    text = write_report(read_records([tmp_path / "chain"]), [], tmp_path / "r.html").read_text()
    assert "episodic, 1 seed<" in text
    assert "no credit, 1 seed<" in text
