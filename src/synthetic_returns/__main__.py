"""``python -m synthetic_returns`` is the command ``synthetic-returns``."""

from synthetic_returns.cli import main

main()
