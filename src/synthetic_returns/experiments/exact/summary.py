"""One row for each method, task and policy: the mean over the seeds, and the outermost ones."""

from collections.abc import Sequence

import numpy as np

from synthetic_returns.utils.tables import Row

__all__ = ["MEASURES", "by_run", "pooled", "summarise"]

TINY = 1e-12
MEASURES = ("correlation", "correlation_of_means", "bias", "deviation", "expected_return")


def summarise(rows: Sequence[Row]) -> list[Row]:
    """Sums up the rows of all runs.

    With a random policy, what counts is the credit at the end. While the policy learns, all that
    was paid on the way counts.
    """
    summary = []
    for (task, policy, method), runs in by_run(rows).items():
        seeds = [pooled(run, all_of_it=policy == "learning") for run in runs]
        row = {"task": task, "policy": policy, "method": method, "seeds": len(seeds)}
        for name in MEASURES:
            values = [seed[name] for seed in seeds]
            row |= {name: np.mean(values)}
            row |= {f"{name}_lowest": np.min(values), f"{name}_highest": np.max(values)}
        summary.append(row)
    return summary


def by_run(rows: Sequence[Row]) -> dict[tuple[str, str, str], list[list[Row]]]:
    """The rows of each seed, by task, policy and method."""
    runs: dict[tuple[str, str, str], dict[float, list[Row]]] = {}
    for row in rows:
        of_seeds = runs.setdefault((row["task"], row["policy"], row["method"]), {})
        of_seeds.setdefault(row["seed"], []).append(row)
    return {name: list(of_seeds.values()) for name, of_seeds in runs.items()}


def pooled(rows: Sequence[Row], *, all_of_it: bool) -> dict[str, float]:
    """The measures of one run, and the expected return at its end.

    Bias and deviation, the root of the variance, are in units of the exact credit: 0 for what is
    right, while paying nothing at all has a bias of 1 and no deviation.

    Args:
      rows: of the run.
      all_of_it: whether all of its episodes count together, each row for those since the row
        before; otherwise the last row.
    """
    # Credit that overflows has neither bias nor variance: those moments are left out.
    rows = [row for row in rows if np.isfinite(row["spread"])]
    steps = np.array([row["env_steps"] for row in rows], float)
    share = np.diff(steps, prepend=0.0) if all_of_it else (steps == steps[-1]).astype(float)

    def column(name: str) -> np.ndarray:
        return np.array([row[name] for row in rows], float)

    def total(squares: np.ndarray) -> float:
        return max(float(np.sum(share * squares)), TINY)

    def together(correlation: np.ndarray, spread: np.ndarray) -> float:
        shared = np.sum(share * correlation * spread * exact)
        return float(shared / np.sqrt(total(spread**2) * total(exact**2)))

    exact, spread, variance = column("exact"), column("spread"), column("variance")
    of_means = np.sqrt(np.maximum(spread**2 - variance, 0))
    return {
        "correlation": together(column("correlation"), spread),
        "correlation_of_means": together(column("correlation_of_means"), of_means),
        "bias": float(np.sqrt(total(column("bias") ** 2) / total(exact**2))),
        "deviation": float(np.sqrt(total(variance) / total(exact**2))),
        "expected_return": float(rows[-1]["expected_return"]),
    }
