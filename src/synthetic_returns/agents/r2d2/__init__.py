"""R2D2: recurrent double Q-learning from a replay of sequences."""
