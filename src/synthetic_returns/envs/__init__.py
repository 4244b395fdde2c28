"""The tasks: pure functions of one environment, and the batch that runs many of them."""
