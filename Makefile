# Two commands do everything on a fresh machine with Python 3.11 or newer and make:
#   make demo    sets up and shows synthetic returns at work
#   make test    sets up and runs lint, types and tests

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: setup demo test pytest test-slow lint types browser docs release-check clean

setup: $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/synthetic-returns demo

# Types are checked while the tests run: pyright uses one core only.
test: lint browser
	@$(MAKE) --no-print-directory --jobs 2 types pytest

pytest: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

test-slow: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n auto -m slow

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.installed-dev
	$(BIN)/pyright

# The pages are tested in a real browser. Where it cannot be installed, these tests are skipped.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
	|| command -v google-chrome >/dev/null \
	|| { test "$$(id -u)" = 0 && export DEBIAN_FRONTEND=noninteractive \
	     && apt-get update --quiet --quiet \
	     && apt-get install --quiet --quiet --yes --no-install-recommends chromium >/dev/null; } \
	|| echo "no chromium here, and it cannot be installed: the browser tests will be skipped"

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "the site is in site/; $(BIN)/python -m mkdocs serve shows it while you write"

# Builds sdist and wheel and tries the wheel alone, with the oldest and the newest dependencies.
release-check:
	$(PYTHON) .ci/release_check.py

$(VENV)/.installed-docs: $(VENV)/.installed
	$(PIP) --editable ".[docs]"
	touch $@

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "synthetic-returns needs Python 3.11 or newer; try: make PYTHON=python3.11 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) --editable ".[dev,atari,sb3,examples,sweep,cluster]"
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache site
