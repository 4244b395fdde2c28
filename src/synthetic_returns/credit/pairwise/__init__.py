"""Pairwise state-associative learning: the general form, of the paper's supplement."""
