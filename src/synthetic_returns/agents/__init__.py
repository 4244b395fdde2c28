"""The agents: what acts, and how it learns from unrolls."""
