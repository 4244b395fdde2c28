"""One scale, one reference and one sentence for all episodes of a page."""

import numpy as np
import pytest

from synthetic_returns.credit.explanation import Term
from synthetic_returns.viewer.main_line import common_limits, main_line
from synthetic_returns.viewer.meaning import (
    OTHER_STEPS,
    credit_in_words,
    credit_of_events,
    difference_in_words,
)
from synthetic_returns.viewer.recording import Recording
from tests.viewer.made_up import one_of_each_kind


def landings(caught: list[int], missed: list[int], **changes) -> Recording:
    """Ten steps of a policy that hardly misses: a catch earns 0.1, a miss costs 0.9."""
    t = np.arange(11)
    events = {"catch": np.isin(t, caught) * 1.0, "miss": np.isin(t, missed) * 1.0}
    credit = np.where(np.isin(t, caught), 0.1, np.where(np.isin(t, missed), -0.9, 0.0))
    reward = np.where(t == 10, float(len(caught)), 0.0)
    fields = {"terms": {"c": Term(credit, "synthetic return")}, "events": events}
    return Recording(reward, **fields | changes)


REFERENCE = np.where(np.isin(np.arange(11), [3, 6, 10]), -0.7, 0.0)  # random play, which misses


def test_against_random_play_a_catch_looks_like_a_catch():
    line = main_line(landings([3], [6], reference=REFERENCE))
    assert line.label == "synthetic return, relative to random play"
    assert line.values[3] == pytest.approx(0.8)
    assert line.values[6] == pytest.approx(-0.2)
    assert line.values[10] == 0  # the end earns nothing, and is compared with nothing
    assert main_line(landings([3], [6])).label == "synthetic return"


def test_what_each_event_earns_and_the_difference_that_matters():
    episodes = [landings([3, 6, 10], [], reference=REFERENCE), landings([3], [6])]
    means = credit_of_events(episodes)
    assert list(means) == ["catch", OTHER_STEPS, "miss"]
    assert means["catch"] == pytest.approx((0.8 + 0.8 + 0.1) / 3)  # not that at the end
    assert means["miss"] == pytest.approx(-0.9)
    assert difference_in_words(credit_of_events([landings([3], [6])])) == (
        "a catch earns 1.00 more than a miss"
    )
    said = credit_in_words(episodes)
    assert "relative to random play at the same step" in said
    assert "\N{MINUS SIGN}0.90 for a miss" in said
    assert said.endswith("In these episodes a catch earns 1.47 more than a miss.")


def test_the_truth_is_told_where_the_task_knows_it():
    truth = np.where(np.isin(np.arange(11), [3]), 1.0, 0.0)
    assert credit_in_words([landings([3], [6], truth=truth)]).endswith(
        "a catch earns 1.00 more than a miss; the true difference is 1.00."
    )
    assert "true" not in credit_in_words([landings([3], [6])])


def test_where_there_is_little_to_say():
    assert "a catch earns 0.10 more than any other step" in credit_in_words([landings([3], [])])
    flat = landings([3], [6], terms={"c": np.zeros(11)})
    assert "no event earns more than another yet" in credit_in_words([flat])
    assert credit_in_words([landings([], [])]).endswith("in units of reward.")
    assert credit_in_words([landings([3], [6], terms={})]) == "This agent learned without credit."
    for credit, words in (("choice", "each action"), ("links", "every later one")):
        episode = Recording(np.zeros(11), one_of_each_kind(11), credit)
        assert words in credit_in_words([episode])


def test_one_scale_holds_all_episodes():
    assert common_limits([landings([3], []), landings([], [6])]) == (-0.9, 0.1)


def test_a_reference_of_another_length_is_refused():
    with pytest.raises(ValueError, match="reference has shape"):
        landings([3], [], reference=np.zeros(4))
