"""Tests of where compiled programs are kept."""

from pathlib import Path

from synthetic_returns import cli
from synthetic_returns.utils.compilation_cache import DIRECTORY, keep_compiled


def test_compiled_programs_are_kept_in_the_users_cache(tmp_path):
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    keep_compiled(environment)
    assert Path(environment[DIRECTORY]).is_relative_to(tmp_path)
    assert int(environment["JAX_COMPILATION_CACHE_MAX_SIZE"]) <= 1 << 30


def test_without_a_cache_directory_it_is_below_home(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    environment: dict[str, str] = {}
    keep_compiled(environment)
    assert Path(environment[DIRECTORY]).is_relative_to(tmp_path / ".cache")


def test_a_directory_that_the_user_names_is_left_alone():
    environment = {DIRECTORY: "mine"}
    keep_compiled(environment)
    assert environment == {DIRECTORY: "mine"}


def test_the_command_line_keeps_them(monkeypatch):
    kept = []
    monkeypatch.setattr(cli, "keep_compiled", lambda: kept.append(True))
    cli.main(["credit", "none"])
    assert kept
