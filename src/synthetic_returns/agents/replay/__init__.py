"""Experience that is learned from again: unrolls, drawn by priority, paid by today's credit."""
