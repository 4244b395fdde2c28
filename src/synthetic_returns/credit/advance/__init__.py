"""Rewards paid in advance: potentials learned by regression, settled at the end of an episode."""
