import heapq

from hypothesis import given
from hypothesis import strategies as st

from ragaliq.reports.gathering import Worst, badness, take_in_turn

KEYS = st.tuples(st.sampled_from([-1.0, -0.5, 0.0]), st.integers(0, 2), st.integers(0, 2))


@given(st.lists(KEYS, max_size=40), st.integers(0, 10))
def test_the_worst_are_kept_whatever_the_order(keys, limit):
    worst = Worst(limit)
    for number, key in enumerate(keys):
        worst.add(key, number, key)
    expected = heapq.nlargest(limit, [(key, number) for number, key in enumerate(keys)])
    assert [(item, number) for number, item in worst.worst_first()] == expected


def test_each_list_gives_its_first_before_any_gives_its_second():
    lists = [[(1, "a"), (2, "b")], [(3, "c"), (1, "a"), (4, "d")]]
    assert [item for _, item in take_in_turn(lists)] == ["a", "c", "b", "d"]


def test_where_a_low_score_is_good_a_high_one_is_bad(metric_of):
    metric = metric_of("toxicity", 0.9, higher_is_better=False)
    assert badness(metric) == (-(1.0 - 0.9), 0, 0)


def test_an_answer_is_as_bad_as_its_worst_metric(metric_of):
    assert badness(metric_of("faithfulness", 0.9), metric_of("relevance", 0.2)) == (-0.2, 0, 0)


def test_a_failure_is_not_bad(metric_of):
    assert badness(metric_of("faithfulness", None)) is None
