"""What the tests of commands share."""

import os
import shutil

import pytest

from synthetic_returns.utils import listing


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(listing, "is_terminal", lambda: True)
    size = os.terminal_size((80, 24))
    monkeypatch.setattr(shutil, "get_terminal_size", lambda *_, **__: size)  # pytest asks, too
