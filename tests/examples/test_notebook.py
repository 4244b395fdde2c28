"""The tutorial notebook: it runs from top to bottom, and its results show themselves."""

import ast
import importlib
import json
from pathlib import Path

import jax
import pytest

import synthetic_returns as sr

NOTEBOOK = Path(__file__).parent.parent.parent / "examples" / "tutorial.ipynb"
CELLS = json.loads(NOTEBOOK.read_text())["cells"]
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]


def run_cells(cells: list[str]) -> list[object]:
    """What the last expression of each cell is, as a notebook would show it; else None."""
    names: dict[str, object] = {}
    shown = []
    for number, cell in enumerate(cells):
        tree = ast.parse(cell)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"cell {number}", "exec"), names)
        if last is None:
            shown.append(None)
        else:
            assert isinstance(last, ast.Expr)
            expression = compile(ast.Expression(last.value), f"cell {number}", "eval")
            shown.append(eval(expression, names))
    return shown


def test_the_notebook_is_stored_without_outputs_and_uses_public_names():
    for cell in CELLS:
        assert cell["cell_type"] in ("markdown", "code")
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
    for code in CODE:
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert node.value.id != "sr" or node.attr in sr.__all__, node.attr


def test_links_of_the_notebook_lead_somewhere():
    text = "".join("".join(cell["source"]) for cell in CELLS)
    links = [part.split(")")[0] for part in text.split("](")[1:]]
    assert len(links) > 4
    assert all((NOTEBOOK.parent / link).exists() for link in links)


@pytest.mark.slow
def test_the_notebook_runs_and_shows_its_results(tmp_path, monkeypatch):
    pytest.importorskip("stable_baselines3", reason="needs the extra sb3")
    importlib.import_module("torch").set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TUTORIAL_QUICK", "1")
    with jax.numpy_dtype_promotion("standard"):  # a user need not be strict
        shown = run_cells(CODE)
    drawn = [x._repr_html_() for x in shown if hasattr(x, "_repr_html_")]  # pyright: ignore
    assert len(drawn) == 4  # a run, its episodes, one of the wrapper, an explanation
    assert all("<svg" in html or "<img" in html for html in drawn)
    assert (tmp_path / "runs" / "tutorial.html").exists()
