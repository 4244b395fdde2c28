"""The documentation site is built without a warning, and needs no network."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from synthetic_returns.credit.registry import method_names
from synthetic_returns.envs.registry import TASKS

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_all_pages_are_there_with_pictures_and_equations(site):
    for page in (ROOT / "docs").glob("*.md"):
        assert (site / page.with_suffix(".html").name).exists()
    assert (site / "results" / "chain.png").exists()
    equations = (ROOT / "docs" / "algorithm.md").read_text().count("```math")
    assert (site / "algorithm.html").read_text().count("<math") >= equations > 15
    assert "augmented_reward" in (site / "api.html").read_text()


def test_every_task_and_every_method_has_a_page(site):
    for name in TASKS:
        page = (site / "tasks" / f"{name}.html").read_text()
        assert name in page
        assert "Parameters" in page
    assert (site / "images" / "chain.png").exists()
    for name in method_names():
        assert "Settings" in (site / "methods" / f"{name}.html").read_text()
    assert "Learning rate of Adam" in (site / "methods" / "advance.html").read_text()


def test_the_public_names_are_all_in_the_reference(site):
    import synthetic_returns

    reference = (site / "api.html").read_text()
    for name in synthetic_returns.__all__:
        assert f".{name}" in reference, name


def test_nothing_is_fetched_from_elsewhere(site):
    fetched = re.compile(r'<(?:script|img|link)[^>]+(?:src|href)="(https?:[^"]+)"')
    for page in site.rglob("*.html"):
        found = [url for url in fetched.findall(page.read_text()) if "canonical" not in url]
        assert not found, (page.name, found)
