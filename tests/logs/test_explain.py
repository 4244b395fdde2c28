"""``synthetic-returns explain``: from a file to a page, and safely."""

import json
from typing import Any

import numpy as np
import pytest

from synthetic_returns.cli import main
from synthetic_returns.logs import explaining
from synthetic_returns.logs.explaining import explain_log
from synthetic_returns.logs.page import found
from synthetic_returns.recorded.credit import Credit
from synthetic_returns.recorded.score import Score
from synthetic_returns.utils.files import RunError
from tests.logs.test_files import write_jsonl, write_npz
from tests.recorded.test_credit import ADVANCE, walks

EPISODES = walks(60)


def explain(folder, data="data.npz", updates=20, **settings: Any):
    stages: list[str] = []
    credit = Credit(settings.pop("method", ADVANCE), updates=updates)
    page = explain_log(
        folder / data, folder / "out", credit,
        progress=lambda stage, share: stages.append(stage), **settings,
    )  # fmt: skip
    return page, list(dict.fromkeys(stages))


@pytest.fixture
def log(tmp_path):
    write_npz(tmp_path / "data.npz", EPISODES)
    return tmp_path


def test_a_page_and_the_rewards(log):
    page, stages = explain(log, updates=200)
    assert stages == ["looking", "learning", "writing data.npz", "scoring"]
    text = page.read_text()
    assert "the credit predicts" in text
    score = json.loads((log / "out" / "score.json").read_text())
    assert score["episodes"] == 12
    assert f"{score['explained_variance']:.0%}" in text
    assert "What earns" in text
    assert "<img" in text
    assert "http" not in text.replace("http-equiv", "")  # nothing is fetched
    with np.load(log / "out" / "rewards" / "data.npz") as archive:
        paid = np.split(archive["rewards"], np.cumsum(archive["lengths"])[:-1])
    credit = Credit.load(log / "out" / "credit.npz")
    for rewards, episode in zip(paid, EPISODES, strict=True):
        np.testing.assert_allclose(rewards, credit.redistribute(episode), atol=1e-9)
        assert rewards.sum() == pytest.approx(episode["rewards"].sum(), abs=1e-4)


def test_it_goes_on_where_it_was_stopped(log, monkeypatch):
    def stopped(*args: Any):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Credit, "redistribute", stopped)
        with pytest.raises(KeyboardInterrupt):
            explain(log)
    assert (log / "out" / "credit.npz").exists()
    assert not list((log / "out" / "rewards").glob("*.npz"))
    _, stages = explain(log)
    assert stages == ["writing data.npz", "scoring"]
    _, stages = explain(log)
    assert stages == ["scoring"]


def test_nothing_is_overwritten_silently(log):
    explain(log)
    with pytest.raises(RunError, match=r"other data, or with other settings: .* --overwrite"):
        explain(log, updates=10)
    assert explain(log, updates=10, overwrite=True)[1][0] == "looking"
    (log / "mine").mkdir()
    (log / "mine" / "thesis.txt").write_text("dear")
    with pytest.raises(RunError, match="is not empty and was not made by this command"):
        explain_log(log / "data.npz", log / "mine", Credit(), progress=lambda *_: None)


def test_only_new_episodes_are_scored(log, monkeypatch):
    fitted: list[Any] = []
    fit = Credit.fit

    def noted(self, episodes, *args, **keywords):
        fitted.extend(len(e) for e in episodes)
        return fit(self, episodes, *args, **keywords)

    monkeypatch.setattr(Credit, "fit", noted)
    page, _ = explain(log)
    assert len(fitted) == 48
    assert fitted[:4] == [len(e["rewards"]) for e in EPISODES[:4]]
    assert fitted[4] == len(EPISODES[5]["rewards"])
    assert "12 held-out episodes" in page.read_text()


def test_noise_is_called_nothing(tmp_path):
    rng = np.random.default_rng(0)
    noise = [e | {"rewards": 0 * e["rewards"] + rng.normal() / len(e["rewards"])}
             for e in EPISODES]  # fmt: skip
    for episode in noise:
        episode["rewards"][:-1] = 0
    write_jsonl(tmp_path / "data.jsonl", noise)
    page, _ = explain(tmp_path, "data.jsonl", updates=200)
    assert "Nothing was found" in page.read_text()
    lines = (tmp_path / "out" / "rewards" / "data.jsonl").read_text().splitlines()
    assert len(lines) == 60
    assert sum(json.loads(lines[0])["rewards"]) == pytest.approx(noise[0]["rewards"].sum())


def test_the_sentence_says_what_was_found():
    x = np.arange(10.0)
    assert found(Score(x, 0 * x, x))[0]
    assert "too large" in found(Score(2 * x + np.sin(9 * x), 0 * x, 1.2 * x))[1]
    assert "same return" in found(Score(x, 0 * x, 0 * x))[1]
    good, sentence = found(Score(x, x, x))  # rewards alone say as much
    assert not good
    assert "Nothing was found" in sentence


def test_too_few_episodes(tmp_path):
    write_npz(tmp_path / "data.npz", EPISODES[:6])
    with pytest.raises(RunError, match="number of episodes: 6; at least 10 are needed"):
        explain(tmp_path)


def test_data_that_were_refused_can_be_mended(tmp_path):
    flawed = EPISODES[0] | {"rewards": np.full_like(EPISODES[0]["rewards"], np.nan)}
    write_npz(tmp_path / "data.npz", [*EPISODES[1:9], flawed])
    with pytest.raises(ValueError, match=r"episode 8 of .* is nan"):
        explain(tmp_path)
    write_npz(tmp_path / "data.npz", EPISODES)
    assert explain(tmp_path)[0].exists()


def test_images_and_names_of_states(tmp_path):
    rng = np.random.default_rng(0)
    episodes = [
        {"observations": rng.integers(0, 255, (5, 6, 6, 1)).astype(np.uint8),
         "rewards": np.array([0, 0, 0, float(rng.integers(2))])}
        for _ in range(30)
    ]  # fmt: skip
    write_npz(tmp_path / "data.npz", episodes)
    assert "data:image/png" in explain(tmp_path, updates=20)[0].read_text()
    names = [e | {"observations": rng.integers(0, 4, 5)} for e in episodes]
    write_npz(tmp_path / "data.npz", names)
    explain(tmp_path, updates=20, overwrite=True)


def test_the_command(log, monkeypatch, capsys):
    monkeypatch.chdir(log)
    monkeypatch.setattr(explaining, "SCORED", 5)
    main(["explain", "data.npz", "--updates", "40"])
    assert capsys.readouterr().out.strip().endswith("explanation.html")
    assert (log / "data-credit" / "explanation.html").exists()
    with pytest.raises(SystemExit):
        main(["explain", "nothing.npz"])
    assert "there is no nothing.npz" in capsys.readouterr().err
