"""Methods that share the return out over single transitions: decomposition, RRD and uniform.

All three fit a reward of each transition, ``r_hat(a, s')``, to returns, and pay it instead of
the environment's rewards. They differ in how they fit it.
"""
