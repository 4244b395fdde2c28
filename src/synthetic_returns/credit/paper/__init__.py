"""The paper's method: an episodic memory of states and a state-associative model."""
