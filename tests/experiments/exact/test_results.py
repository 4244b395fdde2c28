"""What is written of the rows of all runs."""

import numpy as np
import pytest

from synthetic_returns.experiments.exact.results import write_exact
from synthetic_returns.experiments.exact.run import ExactStudy
from synthetic_returns.experiments.exact.summary import pooled, summarise
from synthetic_returns.experiments.studies.exact import TASKS
from synthetic_returns.utils.tables import read_csv, write_csv


def row(method="rudder", policy="learning", seed=0, steps=100, **values):
    return {
        "task": TASKS[0].name, "policy": policy, "method": method, "seed": seed,
        "env_steps": steps, "expected_return": 0.5, "correlation": 0.6,
        "correlation_of_means": 0.8, "bias": 0.1, "variance": 0.04, "spread": 0.3, "exact": 0.2,
    } | values  # fmt: skip


def test_the_last_row_alone_is_what_it_says():
    rows = [row(correlation=-1.0, bias=9.0, exact=7.0), row(steps=200)]
    found = pooled(rows, all_of_it=False)
    assert found == pytest.approx(
        {
            "correlation": 0.6,
            "correlation_of_means": 0.8,
            "bias": 0.5,
            "deviation": 1.0,
            "expected_return": 0.5,
        }
    )


def test_moments_count_for_the_steps_before_them_and_by_what_was_at_stake():
    """As if all episodes had been compared together: covariances and squares are summed."""
    rng = np.random.default_rng(0)
    moments = [(rng.normal(size=300) * scale, rng.normal(size=300) * scale) for scale in (1, 5)]
    rows = [
        row(
            steps=steps,
            correlation=np.mean(x * e) / np.sqrt(np.mean(x**2) * np.mean(e**2)),
            spread=np.sqrt(np.mean(x**2)),
            exact=np.sqrt(np.mean(e**2)),
        )
        for steps, (x, e) in zip((100, 200), moments, strict=True)
    ]
    x, e = (np.concatenate([m[i] for m in moments]) for i in range(2))
    expected = np.mean(x * e) / np.sqrt(np.mean(x**2) * np.mean(e**2))
    assert pooled(rows, all_of_it=True)["correlation"] == pytest.approx(expected)
    later = [rows[0], rows[1] | {"env_steps": 1_000_000}]
    assert pooled(later, all_of_it=True)["correlation"] == pytest.approx(
        rows[1]["correlation"], abs=1e-3
    )


def test_every_seed_counts_and_the_outermost_are_named():
    rows = [row(seed=seed, correlation=c) for seed, c in enumerate((0.1, 0.5, 0.9))]
    (found,) = summarise(rows)
    assert found["seeds"] == 3
    assert found["correlation"] == pytest.approx(0.5)
    assert (found["correlation_lowest"], found["correlation_highest"]) == pytest.approx((0.1, 0.9))


def test_everything_is_written(tmp_path):
    study = ExactStudy(TASKS[:2], ("none", "rudder"), 2)
    with pytest.raises(ValueError, match="no run has finished"):
        write_exact(study, tmp_path / "runs", tmp_path / "out")
    for cell in study.cells[:3]:
        for (policy, seed), path in cell.paths(tmp_path / "runs").items():
            rows = [
                row(cell.method, policy, seed, steps) | {"task": cell.task.name}
                for steps in (100, 200)
            ]
            write_csv(path, rows)
    files = write_exact(study, tmp_path / "runs", tmp_path / "out")
    assert {path.name for path in files} == {
        *("exact.csv", "table.csv", "table.md"),
        *("exact.png", "exact-errors.png", "exact-curves.png"),
    }
    assert all(path.stat().st_size > 300 for path in files)
    assert len(read_csv(tmp_path / "out" / "exact.csv")) == 3 * 2 * 2 * 2
    table = (tmp_path / "out" / "table.md").read_text()
    assert "| `rudder` | 0.60 (0.60 .. 0.60) |  |" in table
    assert "| `none` | 0.60 (0.60 .. 0.60); 0.50 .. 0.50 |" in table
