"""Whatever a file or a trace holds, it is read, or refused with one clear error."""

import contextlib
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragaliq.errors import DatasetError
from ragaliq.traces import SpanEvent, TraceSpan, cases_of_trace
from ragaliq.traces.cases import REASONS
from ragaliq.traces.files import spans_in

SAME_FOLDER = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    max_examples=30,
)
NAMES = st.sampled_from(
    "resourceSpans scopeSpans spans traceId spanId parentSpanId attributes key value stringValue "
    "arrayValue kvlistValue values intValue context trace_id span_id name events data scope "
    "resource status code startTimeUnixNano endTimeUnixNano".split()
)
TEXTS = st.sampled_from(
    ["a" * 32, "b" * 16, "x", "", "0" * 16, "7", "2026-01-01", "{", "[]", "null"]
)
ATOMS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
JSON = st.recursive(
    ATOMS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)
BLOCK = st.fixed_dictionaries({"type": st.just("text") | JSON, "text": JSON})
MESSAGE = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "tool"]) | TEXTS,
        "content": JSON | st.lists(BLOCK),
    }
)
HELD = (
    ATOMS
    | JSON
    | JSON.map(json.dumps)
    | st.lists(MESSAGE, max_size=3).map(json.dumps)
    | st.dictionaries(
        st.sampled_from(["messages", "context", "answer", "documents"]), JSON, max_size=2
    ).map(json.dumps)
)
ATTRIBUTES = st.dictionaries(
    st.sampled_from(
        "input.value input.mime_type output.value metadata retrieval.documents "
        "retrieval.documents.0.document.content retrieval.documents.x.document.content "
        "retrieval.documents.1.document.id reranker.output_documents reranker.input_documents "
        "llm.input_messages.0.message.role llm.output_messages gen_ai.input.messages "
        "gen_ai.output.messages gen_ai.retrieval.documents gen_ai.tool.call.result "
        "traceloop.entity.input traceloop.entity.output llm.prompt_template.variables".split()
    ),
    HELD | st.just("application/json"),
    max_size=5,
)
KINDS = st.one_of(
    st.builds(
        lambda kind: {"openinference.span.kind": kind},
        st.sampled_from("CHAIN AGENT RETRIEVER RERANKER LLM TOOL PROMPT EVALUATOR ODD".split()),
    ),
    st.builds(
        lambda name: {"gen_ai.operation.name": name},
        st.sampled_from("chat retrieval invoke_agent execute_tool odd".split()),
    ),
    st.builds(
        lambda kind: {"traceloop.span.kind": kind}, st.sampled_from(["workflow", "task", "tool"])
    ),
    st.just({}),
)
SPAN_IDS = st.integers(1, 8).map(lambda number: f"{number:016x}")


@st.composite
def span_of(draw):
    return TraceSpan(
        trace_id="a" * 32,
        span_id=draw(SPAN_IDS),
        parent_id=draw(st.none() | SPAN_IDS),
        name=draw(
            st.sampled_from(["x", "Engine.query", "R.retrieve", "S.synthesize", "Flow.run", "a.b"])
        ),
        start_ns=draw(st.integers(0, 50)),
        end_ns=draw(st.integers(0, 99) | st.integers()),
        is_error=draw(st.booleans()),
        attributes=draw(ATTRIBUTES) | draw(KINDS),
        events=tuple(
            draw(st.lists(st.builds(SpanEvent, name=TEXTS, attributes=ATTRIBUTES), max_size=1))
        ),
        scope=draw(
            st.sampled_from(
                [
                    "",
                    "openinference.instrumentation.langchain",
                    "openinference.instrumentation.llama_index",
                ]
            )
        ),
    )


@SAME_FOLDER
@given(st.lists(span_of(), max_size=6))
def test_any_trace_gives_cases_and_known_reasons(spans):
    for found in cases_of_trace(spans):
        assert (found.log is None) == bool(found.reason)
        assert found.reason in REASONS | {"": ""}
        assert found.reason != "internal_error"
        if found.log is not None:
            assert found.log.query.strip()
            assert found.log.response.strip()


@SAME_FOLDER
@given(st.lists(JSON, max_size=3), st.booleans())
def test_any_json_is_read_or_refused(tmp_path, values, pretty):
    path = tmp_path / "any.json"
    path.write_text("\n".join(json.dumps(each, indent=1 if pretty else None) for each in values))
    with contextlib.suppress(DatasetError):
        list(spans_in(path))


@SAME_FOLDER
@given(
    st.binary(max_size=200), st.sampled_from([b"", b"\n", b"\x0a\x05", b"{", b"\x1f\x8b", b"PAR1"])
)
def test_any_bytes_are_read_or_refused(tmp_path, data, start):
    path = tmp_path / "any.bin"
    path.write_bytes(start + data)
    with contextlib.suppress(DatasetError):
        list(spans_in(path))


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": 5},
        {"role": "user", "content": [{"type": ["text"], "text": "x"}]},
        {"role": "user", "parts": {"type": "text"}},
        {"role": ["user"], "content": "x"},
        {"role": "user", "content": [None, 1, [], {"type": None}]},
        ["user", {"a": 1}],
    ],
    ids=json.dumps,
)
def test_messages_of_odd_form(message):
    held = json.dumps([message])
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": held}
    span = TraceSpan(trace_id="a" * 32, span_id="b" * 16, attributes=attributes)
    assert [found.reason for found in cases_of_trace([span])] == ["not_rag"]


def test_a_time_that_is_none_is_left_out():
    span = TraceSpan(
        trace_id="a" * 32,
        span_id="b" * 16,
        end_ns=10**400,
        attributes={"openinference.span.kind": "CHAIN"},
    )
    assert [found.run.ended_at for found in cases_of_trace([span])] == [0]


def test_what_no_reader_expects_costs_its_trace_only(monkeypatch):
    def refuse(_):
        raise RuntimeError

    monkeypatch.setattr("ragaliq.traces.tree.step_of", refuse)
    span = TraceSpan(trace_id="a" * 32, span_id="b" * 16)
    assert [found.reason for found in cases_of_trace([span])] == ["internal_error"]
