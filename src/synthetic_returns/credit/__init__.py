"""Who earned the reward: the protocol of credit methods, their driver, and the methods."""
