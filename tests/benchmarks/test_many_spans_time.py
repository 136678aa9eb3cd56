"""The time that reading one trace takes grows with its spans, whatever they are to each other."""

import sys
import time
from pathlib import Path

import pytest

from ragaliq.traces import cases_of_trace

sys.path.append(str(Path(__file__).parent.parent / "traces"))

from test_hand_written import (
    a_reranker_each,
    documents_in_one_prompt,
    requests_inside_each_other,
    retrievers_that_embed,
    syntheses,
    tools_in_one_prompt,
)

FORMS = [
    retrievers_that_embed,
    a_reranker_each,
    syntheses,
    requests_inside_each_other,
    documents_in_one_prompt,
    tools_in_one_prompt,
]


@pytest.mark.benchmark
@pytest.mark.parametrize("spans_of", FORMS)
def test_eight_times_the_spans_take_about_eight_times_as_long(spans_of):
    few, many = (
        min(seconds(spans) for _ in range(3)) for spans in (spans_of(2_000), spans_of(16_000))
    )
    assert many < 24 * few  # with a search through all of them for each: 64 times


def seconds(spans):
    began = time.perf_counter()
    for case in cases_of_trace(spans):
        assert case.log is None or case.log.found_context
    return time.perf_counter() - began
