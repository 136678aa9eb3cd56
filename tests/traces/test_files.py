"""Files of spans: told by what is in them, read in parts, refused or skipped with the place."""

import gzip
import json
import math
import random

import pyarrow as pa
import pytest
from hand_written import TRACE
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from otlp import document, protobuf
from pyarrow import parquet
from spans import ANSWER, QUESTION, TEXTS, Spans

from ragaliq.datasets import read_cases
from ragaliq.datasets.trace_files import holds_traces
from ragaliq.errors import DatasetError
from ragaliq.traces import TraceReader
from ragaliq.traces.files import spans_in

ROOT, FOUND = "1" * 16, "2" * 16


def traced():
    """A retriever in a chain, as an application's SDK has them."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    app = Spans(provider)
    with app.span("rag", kind="CHAIN", asked=QUESTION) as root:
        app.retrieve()
        app.say(root, output=ANSWER)
    return exporter.get_finished_spans()


TRACED = traced()
SPANS = document(TRACED)["resourceSpans"][0]["scopeSpans"][0]["spans"][::-1]


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
        "---\r\n- question: Q?\r\n  answer: A.\r\n",
        "-\n  question: Q?\n  answer: A.\n",
        "q,a\r\nQ?,A.\r\n",
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
    assert f"{path}, line 1, resourceSpans[0].scopeSpans[0].{problem}" in str(refused.value)

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


@pytest.mark.parametrize("length", [40, 60, 200])
def test_protobuf_that_breaks_off(length, written):
    path = written("t.pb", protobuf(TRACED)[:length])
    with pytest.raises(DatasetError, match="message 1: "):
        list(TraceReader(path))


def test_spans_come_one_by_one(written):
    path = written("t.jsonl", "\n".join(json.dumps(request(each)) for each in SPANS) + "\n{broken")
    found = spans_in(path)
    assert [next(found).span_id for _ in SPANS] == [each["spanId"] for each in SPANS]
    assert str(next(found)).startswith("line 3: ")


LINE = json.dumps(request(*SPANS))


PRINTED = [json.dumps(each, indent=4) for each in PHOENIX]


DEEP = '{"resourceSpans": ' + "[" * 100_000 + "]" * 100_000 + "}"


NO_SPAN = "it is neither a span nor an export request with spans"


BROKEN = {
    "the first line is cut": (f"{LINE[300:]}\n{LINE}\n", "line 1: it is not JSON"),
    "the first line is no text": (
        b'{"resourceSpans": "\xff"}\n' + LINE.encode(),
        "line 1: byte 0xff in column 20 is not UTF-8",
    ),
    "the first line is nested": (f"{DEEP}\n{LINE}", "line 1: it is nested too deeply"),
    "the first line is a number": (
        '{"resourceSpans": ' + "9" * 5_000 + f"}}\n{LINE}",
        "line 1: it holds a number of too many digits",
    ),
    "the program said something first": (
        "\n".join(["Listening.", *PRINTED]),
        "line 1: it is not JSON",
    ),
    "the program said something between": (
        f"{PRINTED[0]}\nGET / 200\n{PRINTED[1]}\n",
        "line 21: it is not JSON",
    ),
    "the last value is cut": (
        "\n".join([*PRINTED, PRINTED[0][:100]]),
        "line 53: it is not JSON",
    ),
    "a line is no object": (f"{LINE}\nnull\n", f"line 2: {NO_SPAN}"),
    "a line is a number": (f"{LINE}\n-5.1e3\n", f"line 2: {NO_SPAN}"),
    "a line is a text": (f'{LINE}\n"a \\"b\\""\r\n', f"line 2: {NO_SPAN}"),
    "a line begins as a number": (f"{LINE}\n5 requests\n", "line 2: it is not JSON"),
    "a list is cut": ("[\n" + ",\n".join(map(json.dumps, PHOENIX)), "line 3: it is not JSON"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_whole_is_read(name, written):
    content, problem = BROKEN[name]
    path = written("t.log", content)
    with pytest.raises(DatasetError) as refused:
        list(read_cases(path))
    assert str(refused.value).startswith(f"{path}, {problem}")

    reader = read_cases(path, on_error="skip")
    assert_the_case(reader)
    assert reader.skipped == 1


def test_a_document_over_several_lines_is_refused_for_one_byte(written):
    content = FILES["requests in a list"].encode().replace(b"five", b"f\xefve", 1)
    with pytest.raises(DatasetError, match=r": line \d\d+: byte 0xef in column \d+ is not UTF-8"):
        list(spans_in(written("t.json", content)))


def test_values_in_protobuf(written):
    one = {"values": [{"double_value": 2.5}]}
    pair = {"key": "k", "value": {"array_value": one}}
    values = [
        ({"double_value": math.inf}, math.inf),
        ({"bytes_value": b"\1\2"}, "0102"),
        ({"int_value": 0}, 0),
        ({"bool_value": False}, False),
        ({"string_value": ""}, ""),
        ({"kvlist_value": {"values": [pair]}}, {"k": [2.5]}),
        ({}, None),
    ]
    message = TracesData()
    ours = message.resource_spans.add().scope_spans.add().spans.add()
    ours.trace_id, ours.span_id, ours.parent_span_id = b"\1" * 16, b"\2" * 8, bytes(8)
    for number, (held, _) in enumerate(values):
        ours.attributes.add(key=str(number), value=AnyValue(**held))
    (span,) = spans_in(written("t.pb", message.SerializeToString()))
    assert list(span.attributes.values()) == [expected for _, expected in values]
    assert (span.trace_id, span.span_id, span.parent_id) == ("01" * 16, "02" * 8, None)


def test_files_put_after_each_other_without_a_line_between(written):
    lines = [json.dumps(request(each)) for each in SPANS]
    assert_the_case(read_cases(written("t.jsonl", f"{LINE}\n{lines[0]}{lines[1]}\n")))


def packed_and_cut():
    # Beside a line that does not pack well: gzip gives out what it has only by the block.
    noise = random.Random(1).randbytes(200_000).hex()
    return gzip.compress(f"{LINE}\n{noise}\n".encode())[:-50_000]


def message_and_a_piece():
    return protobuf(TRACED) + protobuf(TRACED)[:-5]


@pytest.mark.parametrize("content", [packed_and_cut, message_and_a_piece])
def test_what_was_read_before_the_file_broke_off(content, written):
    path = written("t.any", content())
    with pytest.raises(DatasetError):
        list(read_cases(path))
    reader = read_cases(path, on_error="skip")
    assert_the_case(reader)
    assert reader.skipped_rows[-1].where == "the rest of the file"


def test_no_parent_in_base64(written):
    spans = [{**SPANS[0], "parentSpanId": "AAAAAAAAAAA="}, SPANS[1]]
    assert_the_case(read_cases(written("t.json", request(*spans))))


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
def test_times_as_numbers(unit, written):
    """A table's times as pandas writes them, and in the other units that are usual."""
    moment = 1_767_225_600 * unit
    rows = [
        {**row, "start_time": moment + number, "end_time": moment + 9 * unit}
        for number, row in enumerate(PHOENIX)
    ]
    (case,) = read_cases(written("t.jsonl", "\n".join(map(json.dumps, rows))))
    assert case.run.ended_at == 1_767_225_609


@pytest.mark.parametrize("start", [b"\x28\xb5\x2f\xfd", b"\0\0\1\0\x28\xb5\x2f\xfd"])
def test_zstd_is_refused_by_its_name(start, written):
    with pytest.raises(DatasetError, match="compressed with zstd; unpack it"):
        list(read_cases(written("traces.json", start + b"x" * 300)))


def test_messages_in_log_records_belong_to_their_spans(written):
    trace, own = "a" * 32, "b" * 16
    asked = {"stringValue": json.dumps({"role": "user", "content": "When?"})}
    said = {"kvlistValue": {"values": [text("content", "At nine.")]}}
    record = {"traceId": trace, "spanId": own}
    records = [
        {**record, "attributes": [text("event.name", "gen_ai.user.message")], "body": asked},
        {
            **record,
            "eventName": "gen_ai.choice",
            "body": {"kvlistValue": {"values": [{"key": "message", "value": said}]}},
        },
        {"body": {"stringValue": "of no span"}},
    ]
    model = {**record, "name": "chat", "startTimeUnixNano": "5", "endTimeUnixNano": "9"}
    model["attributes"] = [text("gen_ai.operation.name", "chat")]
    found = {**record, "spanId": "c" * 16, "name": "search", "startTimeUnixNano": "1"}
    found |= {
        "endTimeUnixNano": "3",
        "attributes": [
            text("gen_ai.operation.name", "retrieval"),
            text(
                "gen_ai.retrieval.documents", json.dumps([{"content": "The shop opens at nine."}])
            ),
        ],
    }
    for each in (model, found):
        each["parentSpanId"] = "d" * 16
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}
    spans = {"resourceSpans": [{"scopeSpans": [{"spans": [model, found]}]}]}
    path = written("traces.jsonl", f"{json.dumps(logs)}\n{json.dumps(spans)}\n")
    (case,) = read_cases(path)
    assert (case.query, case.response) == ("When?", "At nine.")
    assert case.context_texts == ["The shop opens at nine."]


def text(key, value):
    return {"key": key, "value": {"stringValue": value}}
