"""Tables as CSV files."""

import math

import numpy as np
import pytest

from synthetic_returns.utils.tables import read_csv, write_csv


def test_rows_round_trip_with_missing_values_and_new_columns(tmp_path):
    path = tmp_path / "rows.csv"
    write_csv(
        path, [{"name": "a", "x": np.float64(0.123456)}, {"name": "b", "y": 800_000, "x": None}]
    )
    assert path.read_text() == "name,x,y\na,0.12346,\nb,,800000\n"
    first, second = read_csv(path)
    assert first["x"] == pytest.approx(0.12346)
    assert math.isnan(first["y"])
    assert second["name"] == "b"
    assert second["y"] == 800_000


def test_any_text_can_be_a_cell(tmp_path):
    path, text = tmp_path / "rows.csv", 'a, "b"\nand c'
    write_csv(path, [{"name": text, "x": 1}])
    assert read_csv(path) == [{"name": text, "x": 1}]


def test_no_file_is_no_rows(tmp_path):
    assert read_csv(tmp_path / "rows.csv") == []
