from ragaliq.reports.gathering import badness


def test_where_a_low_score_is_good_a_high_one_is_bad(metric_of):
    metric = metric_of("toxicity", 0.9, higher_is_better=False)
    assert badness(metric) == (-(1.0 - 0.9), 0, 0)


def test_a_failure_is_not_bad(metric_of):
    assert badness(metric_of("faithfulness", None)) is None
