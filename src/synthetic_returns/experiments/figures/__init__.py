"""What all figures share: style, curves, the credit over an episode."""
