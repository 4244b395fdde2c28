"""The paper's experiments: what is run, how it is measured, and the figures made of it."""
