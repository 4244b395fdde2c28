"""TVT: memory reads carry value back to the states that were read."""
