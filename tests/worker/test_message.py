"""Jobs as messages: what goes in comes out, and what is none is refused without a quote."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragaliq import Citation, ContextChunk, RAGTestCase, RunInfo, SpanTarget, Turn
from ragaliq.errors import MessageRefusedError
from ragaliq.worker.message import JobMessage, read_message

TARGET = SpanTarget(trace_id="0af7651916cd43dd8448eb211c80319c", span_id="b7ad6b7169203331")
# Half a surrogate pair and control characters included.
TEXTS = st.text(st.characters(exclude_categories=()), max_size=40)
SHARES = st.floats(0.0, 1.0, exclude_min=True)
METRICS = st.text(st.characters(codec="utf-8"), max_size=40)


def jobs():
    chunks = st.builds(ContextChunk, text=TEXTS, score=st.none() | st.floats(allow_nan=False))
    context = st.lists(TEXTS | chunks, max_size=4)
    roles = st.sampled_from(["user", "assistant"])
    turns = st.builds(Turn, role=roles, text=TEXTS, context=context)
    numbers = st.integers(0, 99)
    citations = st.builds(Citation, start=numbers, end=numbers, quote=TEXTS, source=TEXTS)
    runs = st.builds(
        RunInfo,
        run_id=TEXTS,
        pipeline=TEXTS,
        target=st.sampled_from([None, TARGET]),
        sampling_probability=SHARES,
        metric_probabilities=st.dictionaries(METRICS, SHARES, max_size=3),
        ended_at=st.floats(0.0, 4e9),
    )
    return st.builds(
        RAGTestCase,
        query=TEXTS,
        response=TEXTS,
        context=context,
        history=st.lists(turns, max_size=3),
        citations=st.lists(citations, max_size=2),
        run=runs,
    )


def message_of(case):
    return json.loads(JobMessage.of(case, ["m"]).encoded())


def read(data):
    return read_message(json.dumps(data).encode())


@settings(max_examples=40)
@given(jobs())
def test_a_job_comes_out_of_its_message_as_it_went_in(job):
    message = read_message(JobMessage.of(job, ["faithfulness"]).encoded())
    assert message.evaluated_case() == job


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)
A_MESSAGE = message_of(RAGTestCase(query="q", response="r", run=RunInfo(run_id="r")))


@settings(max_examples=40)
@given(JSON)
def test_anything_else_is_refused_and_not_quoted(data):
    with pytest.raises(MessageRefusedError):
        read(data)


@given(
    st.binary()
    | st.sampled_from([b"[" * 100_000, b'{"version": [2, 0], "case": ' + b"[" * 100_000, b"\xff"])
)
def test_bytes_that_are_no_message_are_refused(body):
    with pytest.raises(MessageRefusedError):
        read_message(body)


@settings(max_examples=60)
@given(st.sampled_from(sorted(A_MESSAGE)), JSON, st.booleans())
def test_a_damaged_message_is_read_or_refused(field, value, newer):
    damaged = A_MESSAGE | ({"version": [2, 5]} if newer else {}) | {field: value}
    with suppress(MessageRefusedError):  # the one thing it may raise
        assert read(damaged).version[0] == 2


def test_what_a_newer_version_says_of_a_conversation_is_ignored():
    chunk = ContextChunk(text="Refunds take five days.", id="refunds")
    case = RAGTestCase(
        query="And for children?",
        response="Five days.",
        history=[Turn(role="assistant", text="Five days.", context=[chunk, "Dogs may come."])],
        citations=[Citation(start=0, end=4)],
        run=RunInfo(run_id="r"),
    )
    message = message_of(case) | {"version": [2, 5]}
    [turn], [citation] = message["case"]["history"], message["case"]["citations"]
    of_case = (message["case"][name] for name in ("sources", "run"))
    for part in (message, turn, turn["context"][0], citation, *of_case):
        part["of_a_newer_version"] = True
    assert read(message).case == case


@pytest.mark.parametrize("value", ["x", ["x"], None, {"x": 1}])
def test_a_newer_versions_field_with_the_name_of_a_class_is_ignored(value):
    case = A_MESSAGE["case"] | {"context": [{"text": "c", "ContextChunk": value, "x": 1}]}
    read_case = read(A_MESSAGE | {"version": [2, 5], "case": case}).case
    assert read_case.context == [ContextChunk(text="c")]


@pytest.mark.parametrize("chunk", [{"text": 1, "x": 1}, {"x": 1}, ["c"], 1, None])
def test_a_chunk_of_a_wrong_kind_is_refused_also_from_a_newer_version(chunk):
    case = A_MESSAGE["case"] | {"context": [chunk]}
    with pytest.raises(MessageRefusedError):
        read(A_MESSAGE | {"version": [2, 5], "case": case})


def test_a_span_that_only_traceparent_names_is_found():
    message = A_MESSAGE | {"traceparent": f"00-{TARGET.trace_id}-{TARGET.span_id}-01"}
    found = read(message).evaluated_case().run.target
    assert found == TARGET.model_copy(update={"source": "traceparent"})


def test_the_id_of_a_job_is_that_of_its_run():
    def id_of(query, ended_at):
        run = RunInfo(run_id="r", ended_at=ended_at)
        return message_of(RAGTestCase(query=query, response="r", run=run))["job_id"]

    assert id_of("q", 2.0) == id_of("p", 2.0) != id_of("q", 3.0)


def test_a_case_without_a_run_is_refused():
    case = A_MESSAGE["case"] | {"run": None}
    with pytest.raises(MessageRefusedError, match="1 wrong field"):
        read(A_MESSAGE | {"case": case})
