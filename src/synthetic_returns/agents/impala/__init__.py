"""IMPALA: V-trace, its losses, and one update from top to bottom."""
