"""State-associative learning on whole episodes, beside the agent."""
