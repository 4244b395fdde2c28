"""Replay: unrolls, drawn by priority and paid by the current credit."""
