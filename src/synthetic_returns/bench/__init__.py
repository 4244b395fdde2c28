"""Measurements of speed, each a function that returns records."""
