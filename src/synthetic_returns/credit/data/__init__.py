"""Episodes as data: recorded from streams of steps, kept in a bounded buffer, sampled."""
