"""Who earned the reward: episodic memory, the state-associative model, augmented rewards."""
