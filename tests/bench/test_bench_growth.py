"""How cost grows: the fit is known by arithmetic, and every kind of growth can be measured."""

import json
import math
import runpy
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest

from synthetic_returns.bench.exponent import exponent, exponent_of_large
from synthetic_returns.bench.growing import GROWING
from synthetic_returns.bench.growth import Cost, measure, run
from synthetic_returns.cli import main
from synthetic_returns.commands.bench import GrowthArguments

SIZES = (100, 300, 1000, 3000, 10_000)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_the_exponent_of_a_power_law_is_its_power(power):
    costs = [0.003 * size**power for size in SIZES]
    assert exponent(SIZES, costs) == pytest.approx(power, abs=1e-9)
    assert exponent_of_large(SIZES, costs) == pytest.approx(power, abs=1e-9)


def test_the_exponent_is_that_of_least_squares():
    costs = np.exp(np.random.default_rng(0).normal(size=len(SIZES)))
    slope, _ = np.polyfit(np.log(SIZES), np.log(costs), 1)
    assert exponent(SIZES, costs.tolist()) == pytest.approx(slope)


def test_what_costs_the_same_at_any_size_hides_growth_less_among_large_sizes():
    costs = [1.0 + 1e-7 * size**2 for size in SIZES]
    assert exponent(SIZES, costs) < 0.6
    assert exponent_of_large(SIZES[::-1], costs[::-1]) > 1


def test_a_slope_needs_two_sizes_and_positive_numbers():
    with pytest.raises(ValueError, match="two different"):
        exponent([7, 7], [1.0, 2.0])
    with pytest.raises(ValueError, match="above 0"):
        exponent([1, 2], [0.0, 2.0])


def test_the_records_are_two_series_and_their_exponents():
    def measured(name: str, size: int, quick: bool) -> Cost:
        assert name == "envs"
        assert not quick
        return Cost(seconds=0.1 * size, mb=50 + 1e-3 * size**2)

    records = {record.name: record for record in run(["envs"], measured=measured)}
    sizes = GROWING["envs"].sizes
    assert sizes[0] == 1
    assert sizes[-1] == 4096
    assert list(records) == [
        *(f"growth/envs/{size}/s" for size in sizes),
        *(f"growth/envs/{size}/mb" for size in sizes),
        *(
            f"growth/envs/{kind}_exponent{which}"
            for kind in ("time", "memory")
            for which in ("", "_large")
        ),
    ]
    assert records["growth/envs/64/s"].value == pytest.approx(6.4)
    assert records["growth/envs/64/mb"].unit == "MB"
    assert records["growth/envs/time_exponent"].value == pytest.approx(1)
    assert 1 < records["growth/envs/memory_exponent_large"].value < 2


def test_a_system_that_does_not_tell_its_memory_gives_time_alone():
    records = run(["actors"], quick=True, measured=lambda name, size, quick: Cost(size, math.nan))
    assert [record.name for record in records] == [
        "growth/actors/1/s",
        "growth/actors/2/s",
        "growth/actors/time_exponent",
        "growth/actors/time_exponent_large",
    ]


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="did you mean 'capacity'"):
        run(["capcity"], quick=True)


@pytest.mark.parametrize("name", list(GROWING))
def test_everything_that_grows_can_be_measured(name):
    cost = measure(name, GROWING[name].quick_sizes[0], quick=True)
    assert cost.seconds > 0


def test_the_command_measures_in_processes_of_their_own(tmp_path, capsys):
    path = tmp_path / "growth.json"
    main(["bench", "growth", "--quick", "--only", "capacity", "--json", str(path)])
    assert "growth/capacity/time_exponent" in capsys.readouterr().out
    values = {record["name"]: record["value"] for record in json.loads(path.read_text())}
    for size in GROWING["capacity"].quick_sizes:
        assert values[f"growth/capacity/{size}/s"] > 0
        assert values.get(f"growth/capacity/{size}/mb", 1) > 0


def test_the_command_offers_everything_that_grows():
    choices, _ = get_args(get_type_hints(GrowthArguments)["only"])
    assert get_args(choices) == tuple(GROWING) == GrowthArguments().only


def test_every_kind_of_growth_has_a_figure(tmp_path):
    path = Path(__file__).parents[2] / "benchmarks" / "growth.py"
    if not path.exists():  # an sdist has no benchmarks
        pytest.skip("the benchmarks are not here")
    script = runpy.run_path(str(path))
    records = run(["envs"], measured=lambda name, size, quick: Cost(1e-3 * size, 9 + size))
    script["draw"](records, "envs", tmp_path / "growth_envs.png")
    assert (tmp_path / "growth_envs.png").stat().st_size > 10_000
