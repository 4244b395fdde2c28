"""The studies: one file for each figure."""
