"""Looking at runs: the episode viewer, the report, and how good the credit is."""
