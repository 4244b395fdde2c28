"""Acting: unrolls of experience in compiled and in host environments, and evaluation."""
