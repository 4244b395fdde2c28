"""Libraries that cannot share the environment of the tests: each is tested in one of its own.

It sees the packages of this one, so that only what an extra adds or changes is installed.
"""

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TESTS = {
    "torchrl": ["tests/wrappers/test_torchrl.py", "tests/docs/test_code_blocks.py -k torchrl"],
    "rllib": ["tests/wrappers/test_rllib.py", "tests/docs/test_code_blocks.py -k rllib"],
    "mujoco": ["tests/examples/test_mujoco.py"],
    "minari": ["tests/logs/test_minari.py"],
    "logs": ["tests/logs/test_files.py"],
    "gymnax": ["tests/envs/test_gymnax.py"],
}

pytestmark = pytest.mark.slow


def extras() -> dict[str, list[str]]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.fixture(params=TESTS)
def environment(request, tmp_path) -> tuple[str, Path]:
    """An extra, and the Python of a virtualenv that has it."""
    extra, python = request.param, tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([python, "-c", where], check=True, capture_output=True, text=True).stdout
    paths = [str(ROOT / "src"), sysconfig.get_path("purelib")]
    (Path(site.strip()) / "shared.pth").write_text("\n".join(paths) + "\n")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, *extras()[extra]], check=True)
    return extra, python


def test_an_extra(environment):
    extra, python = environment
    for arguments in TESTS[extra]:
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments.split()]
        ran = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=3600, env=dict(os.environ)
        )
        assert not ran.returncode, ran.stdout + ran.stderr
        assert re.search(r"\d+ passed", ran.stdout), ran.stdout
        assert "skipped" not in ran.stdout.splitlines()[-1], ran.stdout


def test_every_extra_that_is_not_installed_for_the_tests_is_tested_here():
    installed = (ROOT / "Makefile").read_text()
    (named,) = re.findall(r'--editable "\.\[(dev[^"]*)\]"', installed)
    kept_apart = {"docs", "wandb", "mlflow"}  # dev brings docs; loggers are tested with stand-ins
    assert set(extras()) == set(named.split(",")) | set(TESTS) | kept_apart
