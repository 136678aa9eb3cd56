"""Files of spans: told by what is in them, read in parts, refused with the place."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pytest
from hand_written import ANSWER, QUESTION, TEXTS, TRACE
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, TracesData
from pyarrow import parquet

from ragaliq.datasets import TraceReader, read_cases
from ragaliq.errors import DatasetError
from ragaliq.traces.files import holds_traces, spans_in

ROOT, FOUND = "1" * 16, "2" * 16


def value(held):
    if isinstance(held, list):
        return {"arrayValue": {"values": [value(each) for each in held]}}
    if isinstance(held, dict):
        return {"kvlistValue": {"values": attributes(held)}}
    if isinstance(held, int):
        return {"intValue": str(held)}
    return {"stringValue": held}


def attributes(held):
    return [{"key": name, "value": value(each)} for name, each in held.items()]


def span(span_id, kind, held, *, parent="", times=("1", "9")):
    return {
        "traceId": TRACE,
        "spanId": span_id,
        "parentSpanId": parent,
        "startTimeUnixNano": times[0],
        "endTimeUnixNano": times[1],
        "attributes": attributes({"openinference.span.kind": kind, **held}),
    }


SPANS = [
    span(ROOT, "CHAIN", {"input.value": QUESTION, "output.value": ANSWER}),
    span(
        FOUND,
        "RETRIEVER",
        {f"retrieval.documents.{i}.document.content": text for i, text in enumerate(TEXTS)},
        parent=ROOT,
        times=(2, 3),
    ),
]


def request(*spans, scope="scopeSpans"):
    return {"resourceSpans": [{"resource": {}, scope: [{"scope": {}, "spans": list(spans)}]}]}


# As Phoenix's client gives it, and writes it into tables.
PHOENIX = [
    {
        "name": "rag",
        "span_kind": "CHAIN",
        "parent_id": None,
        "start_time": "2026-01-01T00:00:00+00:00",
        "end_time": "2026-01-01T00:00:09.5+00:00",
        "status_code": "OK",
        "context": {"trace_id": TRACE, "span_id": ROOT},
        "attributes": {"input": {"value": QUESTION}, "output": {"value": ANSWER}},
    },
    {
        "name": "search",
        "span_kind": "RETRIEVER",
        "parent_id": ROOT,
        "start_time": "2026-01-01T00:00:01+00:00",
        "end_time": "2026-01-01T00:00:02+00:00",
        "status_code": "OK",
        "context": {"trace_id": TRACE, "span_id": FOUND},
        "attributes": {
            "retrieval": {"documents": [{"document": {"content": text}} for text in TEXTS]}
        },
    },
]


def phoenix_table(path):
    rows = []
    for each in PHOENIX:
        row = {f"context.{name}": held for name, held in each["context"].items()}
        row |= {k: v for k, v in each.items() if k not in ("context", "attributes")}
        row["attributes.input.value"] = each["attributes"].get("input", {}).get("value")
        row["attributes.output.value"] = each["attributes"].get("output", {}).get("value")
        listed = each["attributes"].get("retrieval", {}).get("documents")
        row["attributes.retrieval.documents"] = listed and [
            {"document.content": item["document"]["content"], "document.score": None}
            for item in listed
        ]
        rows.append(row)
    parquet.write_table(pa.Table.from_pylist(rows), path)


def snake(held):
    if isinstance(held, list):
        return [snake(each) for each in held]
    if not isinstance(held, dict):
        return held
    names = {name: "".join("_" + c.lower() if c.isupper() else c for c in name) for name in held}
    return {names[name]: snake(each) for name, each in held.items()}


FILES = {
    "one request": json.dumps(request(*SPANS)),
    "a request a line": "\n".join(json.dumps(request(each)) for each in SPANS[::-1]),
    "requests in a list": json.dumps([request(each) for each in SPANS], indent=1),
    "requests after each other": "\n".join(json.dumps(request(e), indent=2) for e in SPANS),
    "an older protocol": json.dumps(request(*SPANS, scope="instrumentationLibrarySpans")),
    "protobuf's own names": json.dumps(snake(request(*SPANS))),
    "a byte order mark": "\ufeff" + json.dumps(request(*SPANS)),
    "phoenix a line": "\n".join(map(json.dumps, PHOENIX)),
    "phoenix's server": json.dumps({"data": PHOENIX, "next_cursor": None}),
}


def assert_the_case(reader):
    assert isinstance(reader, TraceReader)
    (case,) = reader
    assert (case.query, case.context_texts, case.response) == (QUESTION, TEXTS, ANSWER)


@pytest.mark.parametrize("name", FILES)
def test_every_form_gives_the_case_packed_or_not_whatever_the_file_is_called(name, written):
    content = FILES[name].encode()
    assert_the_case(read_cases(written("traces.txt", content)))
    assert_the_case(read_cases(written("packed.txt", gzip.compress(content))))


def test_a_table_of_phoenix_s(tmp_path):
    phoenix_table(tmp_path / "spans.parquet")
    assert_the_case(read_cases(tmp_path / "spans.parquet"))


@pytest.mark.parametrize(
    "content",
    [
        '{"question": "Q?", "answer": "A."}',
        '[{"question": "{\\"resourceSpans\\": []}", "answer": "A."}]',
        "question,answer\nQ?,A.\n",
        "",
        "- question: Q?\n  answer: A.\n",
    ],
)
def test_tables_of_cases_are_not_taken_for_traces(content, written):
    assert not holds_traces(written("cases.txt", content))


def test_a_table_of_cases_in_parquet_is_none(tmp_path):
    parquet.write_table(pa.Table.from_pylist([{"question": "Q?"}]), tmp_path / "c.parquet")
    assert not holds_traces(tmp_path / "c.parquet")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"traceId": "xyz"}, "spans[1]: traceId is not an id of 32 hexadecimal digits"),
        ({"spanId": "0" * 16}, "spans[1]: spanId is not an id of 16 hexadecimal digits"),
        ({"startTimeUnixNano": "soon"}, "spans[1]: startTimeUnixNano is not a whole"),
        ({"attributes": {"a": 1}}, "spans[1]: attributes is not a list"),
        ({"attributes": [{"key": "k", "value": "v"}]}, "spans[1]: something is not an object"),
        ({"events": ["e"]}, "spans[1]: something is not an object"),
    ],
)
def test_a_bad_span_is_named_by_its_place_or_left_out(change, problem, written):
    path = written("t.json", request(SPANS[0], {**SPANS[1], **change}, SPANS[1]))
    with pytest.raises(DatasetError) as refused:
        list(read_cases(path))
    assert f"{path}: line 1, resourceSpans[0].scopeSpans[0].{problem}" in str(refused.value)

    reader = read_cases(path, on_error="skip")
    assert_the_case(reader)
    assert reader.skipped == 1


def test_values_nested_too_deeply(written):
    held = {"stringValue": "x"}
    for _ in range(100):
        held = {"arrayValue": {"values": [held]}}
    deep = {**SPANS[0], "attributes": [{"key": "deep", "value": held}]}
    with pytest.raises(DatasetError, match="nested too deeply"):
        list(read_cases(written("t.json", request(deep))))


def test_protobuf_that_breaks_off(written):
    inner = Span(trace_id=b"t" * 16, span_id=b"s" * 8, name="n" * 300)
    whole = TracesData(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[inner])])])
    path = written("t.pb", whole.SerializeToString()[:60])
    with pytest.raises(DatasetError, match="message 1: "):
        list(read_cases(path, file_format="traces"))


def test_spans_come_one_by_one(written):
    path = written("t.jsonl", "\n".join(json.dumps(request(each)) for each in SPANS) + "\n{broken")
    found = spans_in(path)
    assert next(found).span_id == ROOT
    assert next(found).span_id == FOUND
    assert next(found).where == "line 3"
