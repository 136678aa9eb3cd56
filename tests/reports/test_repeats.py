"""A report on cases that were judged several times."""

import pytest

from ragaliq import RunInfo
from ragaliq.core.results import Status
from ragaliq.reports.gathering import Gathering
from ragaliq.sinks.repeats import run_id_of


@pytest.fixture
def gathered(record_of, metric_of):
    """`gathered((case, repeat, score or None, pipeline), ...)` reads records made of that."""

    def read(*judgings):
        found = Gathering(in_full=10, in_rows=10)
        found.read(
            record_of(
                number,
                case_id=case,
                run=RunInfo(run_id=run_id_of(case, repeat), pipeline=pipeline),
                metrics=(metric_of("faithfulness", score),),
            )
            for number, (case, repeat, score, pipeline) in enumerate(judgings)
        )
        (series,) = found.series.values()
        return found, series

    return read


def test_each_case_counts_once_with_its_mean(gathered):
    found, series = gathered(
        ("a", 0, 1.0, ""), ("a", 1, 0.8, ""), ("b", 0, 0.2, ""), ("b", 1, None, ""),
        ("c", 1, None, ""), ("c", 0, None, ""),
    )  # fmt: skip

    assert list(series.scores) == pytest.approx([0.9, 0.2])
    assert series.statuses_of() == {"scored": 2, "judge_timeout": 1}
    assert series.passed_of() == 1
    assert series.spread == pytest.approx(0.1 * 2**0.5)
    assert found.answers_judged == found.pipelines.all[0].answers == 3
    assert found.records == 6


def test_cases_of_two_pipelines_are_never_one(gathered):
    found, series = gathered(("a", 0, 1.0, "x"), ("a", 1, 0.0, "x"), ("a", 0, 0.4, "y"))

    assert list(series.scores) == [0.5, 0.4]
    assert [pipeline.answers for pipeline in found.pipelines.all] == [1, 1]


def test_without_repeats_nothing_is_put_together(gathered):
    found, series = gathered(("a", 0, 1.0, ""), ("a", 0, 0.4, ""), ("b", 0, None, ""))

    assert list(series.scores) == [1.0, 0.4]
    assert series.spread is None
    assert found.answers_judged == 3
    assert series.statuses_of() == {"scored": 2, Status.JUDGE_TIMEOUT.value: 1}
