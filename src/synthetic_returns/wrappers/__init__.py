"""Synthetic returns for agents of any framework: wrappers around vector environments."""
