"""Traces are put together from spans in any order, in bounded memory."""

import pytest

from ragaliq.traces.files import TraceGroups
from ragaliq.traces.span import SpanEvent, TraceSpan


def a_span(trace, number):
    return TraceSpan(
        trace_id=f"{trace:032x}", span_id=f"{number:016x}", attributes={"text": "x" * 10_000}
    )


def test_traces_are_held_until_all_their_spans_are_there():
    groups = TraceGroups()
    spans = [a_span(trace, number) for number in (1, 2) for trace in (1, 2, 3)]
    assert [list(groups.add(each)) for each in spans] == [[]] * 6
    assert sorted(len(trace) for trace in groups.rest()) == [2, 2, 2]
    assert groups.late == 0


def test_beyond_the_bound_the_traces_that_wait_longest_are_given_out():
    groups = TraceGroups(max_bytes=30_000)
    given = [list(groups.add(a_span(trace, 1))) for trace in (1, 2, 3)]
    assert [[each[0].trace_id for each in out] for out in given] == [[], [], [f"{1:032x}"]]
    assert list(groups.add(a_span(1, 2))) == []
    assert groups.late == 1
    assert len(list(groups.rest())) == 2


@pytest.mark.parametrize(
    "held",
    [
        {"attributes": {"text": "\U0001f600" * 30_000}},
        {"attributes": {"name" * 30_000: 1}},
        {"attributes": {"deep": [[["x" * 120_000]]]}},
        {"name": "n" * 120_000},
        {"events": tuple(SpanEvent(name="e") for _ in range(1_000))},
        {"events": (SpanEvent(name="e" * 120_000),)},
    ],
    ids="-".join,
)
def test_everything_a_span_holds_counts(held):
    groups = TraceGroups(max_bytes=100_000)
    (given,) = groups.add(TraceSpan(trace_id="a" * 32, span_id="b" * 16, **held))
    assert len(given) == 1
