"""A line of a results file is a result, a failure, or nothing; never an error and never a score."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaliq.errors import JudgeError
from ragaliq.judges.claude_batch.outcomes import SUCCEEDED, failure_of, read_outcome, read_result

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KINDS = st.sampled_from(["succeeded", "errored", "expired", "canceled", "new"]) | JSON
RESULTS = JSON | st.fixed_dictionaries(
    {},
    optional={
        "type": KINDS,
        "message": JSON,
        "error": JSON | st.fixed_dictionaries({"type": KINDS}),
    },
)
NAMES = st.text("0123456789abcdef-", min_size=1)


@given(st.binary())
def test_bytes_of_any_kind_are_no_error(line):
    read_result(line)


@given(NAMES, RESULTS)
def test_whatever_the_result_of_a_named_request_is_it_is_told(name, result):
    read = read_result(json.dumps({"custom_id": name, "result": result}).encode())

    assert read.request_id == name
    if read.outcome["type"] == SUCCEEDED:
        assert isinstance(read.outcome["message"], dict)
    else:
        assert isinstance(failure_of(read.outcome, "claude"), JudgeError)


@given(st.text() | JSON.map(json.dumps) | RESULTS.map(json.dumps))
def test_whatever_the_store_holds_is_a_reply_or_a_failure(text):
    outcome = read_outcome(text)

    if outcome["type"] == SUCCEEDED:
        assert isinstance(outcome["message"], dict)
    else:
        assert isinstance(failure_of(outcome, "claude"), JudgeError)


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b'{"custom_id": 3, "result": {}}',
        b"null",
        b'{"custom_id": "\\ud800", "result": {"type": "expired"}}',
    ],
)
def test_a_line_that_names_no_request_is_nothing(line):
    assert read_result(line) is None
