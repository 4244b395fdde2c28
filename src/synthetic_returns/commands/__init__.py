"""The subcommands of ``synthetic-returns``; thin, no logic."""
