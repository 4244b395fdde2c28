"""Is the credit right? What methods pay while they learn, beside what dynamic programming says."""
