"""Credit methods side by side: the same agent with each of them on several tasks."""
