"""Novelty as a reward: new within the episode, and new at all (Badia et al. 2020)."""
