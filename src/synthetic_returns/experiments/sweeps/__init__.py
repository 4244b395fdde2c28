"""Random search over any settings, on Optuna; the extra ``[sweep]``."""
