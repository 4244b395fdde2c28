"""Where the numbers and pictures of a run are shown while it is training."""
