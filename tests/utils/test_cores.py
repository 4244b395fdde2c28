"""Cores: those that this process may use, on systems that say which, and on those that do not."""

import os

import pytest

from synthetic_returns.utils.cores import pin, usable_cores


@pytest.fixture
def elsewhere(monkeypatch):
    """As on macOS and Windows: a process does not choose its cores."""
    for name in ("sched_getaffinity", "sched_setaffinity"):
        monkeypatch.delattr(os, name, raising=False)


def test_a_process_has_the_cores_that_it_was_given(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {7, 2}, raising=False)
    assert usable_cores() == [2, 7]


@pytest.mark.parametrize(("counted", "cores"), [(3, [0, 1, 2]), (None, [0])])
def test_elsewhere_cores_are_counted(elsewhere, monkeypatch, counted, cores):
    monkeypatch.delattr(os, "process_cpu_count", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: counted)
    assert usable_cores() == cores
    monkeypatch.setattr(os, "process_cpu_count", lambda: 2, raising=False)  # Python 3.13
    assert usable_cores() == [0, 1]


def test_elsewhere_a_process_is_left_where_it_is(elsewhere):
    pin(os.getpid(), 0)
