"""Credit for recorded episodes, without an agent: fit, redistribute, explain, score."""
