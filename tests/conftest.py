"""Strictness for the whole test run: shapes, dtypes and ranks are checked everywhere."""

import jax
from jaxtyping import install_import_hook

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# Every annotated function of the package is checked at run time while the tests run.
_hook = install_import_hook("synthetic_returns", "beartype.beartype")
