"""Synthetic returns: long-term credit assignment for any reinforcement-learning agent."""
