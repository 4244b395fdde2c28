"""Ways to bring environments, actors and the learner together."""
