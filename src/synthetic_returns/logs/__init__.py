"""Logs of episodes on disk: read, explained, and written with their rewards redistributed."""
