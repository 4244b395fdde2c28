import jax.numpy as jnp
import numpy as np
import pytest

from synthetic_returns.credit.explanation import Explanation, Term
from synthetic_returns.credit.reference import reference_credit


def test_the_mean_over_the_episodes_that_reach_a_step_drawn_to_the_mean_of_all():
    rng = np.random.default_rng(0)
    credit, lengths = rng.normal(size=(6, 4)), [5, 3, 5, 1]  # states before the terminal one
    last = np.arange(6)[:, None] == np.array(lengths)
    credit[0, 2] = np.nan  # not known, so nothing
    explanation = Explanation({"c": Term(jnp.asarray(credit, jnp.float32), "c")}, "c")
    found = reference_credit(explanation, jnp.asarray(last))
    known = np.nan_to_num(credit)
    everything = [known[t, b] for b in range(4) for t in range(lengths[b])]
    overall = sum(everything) / len(everything)
    for t in range(6):
        here = [known[t, b] for b in range(4) if t < lengths[b]]
        wanted = (sum(here) + overall) / (len(here) + 1)
        assert found is not None
        assert found[t] == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("credit", [None, "a"])
def test_what_is_not_one_number_for_each_state_has_none(credit):
    terms = {"a": Term(jnp.zeros((3, 2, 4)), "a", "actions")}
    assert reference_credit(Explanation(terms, credit), jnp.zeros((3, 2), bool)) is None
