import heapq

from hypothesis import given
from hypothesis import strategies as st

from ragaliq.reports.gathering import Worst, badness

KEYS = st.tuples(st.sampled_from([-1.0, -0.5, 0.0]), st.integers(0, 2), st.integers(0, 2))


@given(st.lists(KEYS, max_size=40), st.integers(0, 10))
def test_the_worst_are_kept_whatever_the_order(keys, limit):
    worst = Worst(limit)
    for number, key in enumerate(keys):
        worst.add(key, number, key)
    expected = heapq.nlargest(limit, [(key, number) for number, key in enumerate(keys)])
    assert [(item, number) for number, item in worst.worst_first()] == expected


def test_where_a_low_score_is_good_a_high_one_is_bad(metric_of):
    metric = metric_of("toxicity", 0.9, higher_is_better=False)
    assert badness(metric) == (-(1.0 - 0.9), 0, 0)


def test_a_failure_is_not_bad(metric_of):
    assert badness(metric_of("faithfulness", None)) is None
