from synthetic_returns.experiments.catalog import EXPERIMENTS
from synthetic_returns.experiments.experiment import Bar, Experiment
from synthetic_returns.experiments.table import markdown_table, read_paper_results

NAN = float("nan")


def row(experiment: str, arm: str, steps: float, success: float) -> dict:
    return {
        "experiment": experiment,
        "arm": arm,
        "steps_to_solve": steps,
        "wall_s_to_solve": steps / 1e4,
        "eval_return_mean": 20 * success,
        "eval_success": success,
    }


def cells(table: str, line: int) -> list[str]:
    return [cell.strip() for cell in table.splitlines()[line].strip("|").split("|")]


def test_one_line_per_arm_with_the_paper_beside_it():
    summary = [
        row("catch-delayed-20", "episodic", 400_000, 0.99),
        row("catch-delayed-20", "episodic", NAN, 0.5),
        row("catch-delayed-20", "episodic", 600_000, 1.0),
        row("catch-delayed-20", "none", NAN, 0.15),
    ]
    table = markdown_table(summary, EXPERIMENTS)
    assert cells(table, 2) == [
        "catch-delayed-20",
        "episodic",
        "2 of 3",
        "0.50 M (0.40 M .. 0.60 M)",
        "50 (40 .. 60)",
        "10 .. 20",
        "0.5 .. 1",
        "eval_success ≥ 0.98: 2 of 3 (0.5 .. 1)",
        "return 20 at 6e7",
    ]
    assert cells(table, 3) == [
        *("catch-delayed-20", "none", "0 of 1", "-", "-", "3", "0.15", "", "return 13 at 2e8")
    ]


def test_what_everybody_has_to_know_stands_beside_the_arm_with_credit():
    table = markdown_table(
        [row("skiing", arm, NAN, 1) for arm in ("episodic", "none")], EXPERIMENTS
    )
    assert cells(table, 2)[:2] == ["skiing", "episodic (c sees the counter of gates)"]
    assert cells(table, 3)[:2] == ["skiing", "none"]


def test_a_bar_holds_in_its_range_and_never_for_nan():
    assert Bar("episodic", "x", at_least=1.0).holds(1.0)
    assert not Bar("episodic", "x", at_least=1.0).holds(0.99)
    assert not Bar("episodic", "x", at_most=1.0).holds(1.01)
    assert not Bar("episodic", "x", at_most=1.0).holds(NAN)


def test_lines_stand_in_the_order_of_the_experiments():
    summary = [
        row("b", "episodic", NAN, 0.0),
        row("a", "episodic", NAN, 0.0),
        row("other", "episodic", NAN, 0.0),
    ]
    known = {n: Experiment(n, n, "chain", 1, 0.98, "trigger") for n in ("a", "b")}
    table = markdown_table(summary, known)
    assert [cells(table, line)[0] for line in (2, 3, 4)] == ["a", "b", "other"]


def test_published_results_name_experiments_that_exist_and_their_source():
    published = read_paper_results()
    assert {row["experiment"] for row in published} <= EXPERIMENTS.keys()
    assert all(isinstance(row["source"], str) for row in published)
