"""The page about which method to use says what the committed results say, and nothing else."""

import re
from pathlib import Path

from synthetic_returns.credit.registry import method_names
from synthetic_returns.experiments.comparison.advice import which_method
from synthetic_returns.utils.tables import read_csv

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "methods.md").read_text()


def test_every_method_is_on_the_page():
    for name in method_names():
        assert f"\n| `{name}` | " in PAGE, f"{name} is missing in the table of docs/methods.md"


def test_what_the_arena_says_is_what_its_table_says():
    found = re.search(r"<!-- arena:[^>]*-->\n(.*?)<!-- /arena -->", PAGE, flags=re.DOTALL)
    assert found is not None
    table = read_csv(ROOT / "results" / "arena" / "table.csv")
    if table:
        assert which_method(table) in found[1], "copy results/arena/which-method.md to the page"
    else:
        assert "has not been run in full" in found[1]


def test_the_table_of_exact_credit_is_that_of_its_results():
    found = re.search(r"<!-- exact:[^>]*-->\n(.*?)<!-- /exact -->", PAGE, flags=re.DOTALL)
    assert found is not None
    table = (ROOT / "results" / "exact" / "table.md").read_text()
    assert table in found[1], "copy results/exact/table.md to the page"
