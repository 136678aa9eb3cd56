"""Files that are damaged in one place give what is whole in them, when bad rows are left out."""

from __future__ import annotations

import gzip
import json
import random

import pytest
from google.protobuf.json_format import ParseDict
from hand_written import ANSWER, QUESTION, TEXTS
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from test_files import PHOENIX, SPANS, request, snake

from ragaliq.datasets import TraceReader, read_cases
from ragaliq.errors import DatasetError

LINE = json.dumps(request(*SPANS))
PRINTED = [json.dumps(each, indent=4) for each in PHOENIX]
DEEP = '{"resourceSpans": ' + "[" * 100_000 + "]" * 100_000 + "}"

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
    "a list is cut": ("[\n" + ",\n".join(map(json.dumps, PHOENIX)), "line 3: it is not JSON"),
}


def assert_the_case(reader):
    assert isinstance(reader, TraceReader)
    (case,) = reader
    assert (case.query, case.context_texts, case.response) == (QUESTION, TEXTS, ANSWER)


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_whole_is_read(name, written):
    content, problem = BROKEN[name]
    path = written("t.log", content)
    with pytest.raises(DatasetError) as refused:
        list(read_cases(path))
    assert str(refused.value).startswith(f"{path}: {problem}")

    reader = read_cases(path, on_error="skip")
    assert_the_case(reader)
    assert reader.skipped == 1


def test_files_put_after_each_other_without_a_line_between(written):
    lines = [json.dumps(request(each)) for each in SPANS]
    assert_the_case(read_cases(written("t.jsonl", f"{LINE}\n{lines[0]}{lines[1]}\n")))


def packed_and_cut():
    # Beside a line that does not pack well: gzip gives out what it has only by the block.
    noise = random.Random(1).randbytes(200_000).hex()
    return gzip.compress(f"{LINE}\n{noise}\n".encode())[:-50_000]


def message_and_a_piece():
    body = TracesData()
    ParseDict(snake(request(*SPANS)), body, ignore_unknown_fields=True)
    for of_resource in body.resource_spans:
        for each, written in zip(of_resource.scope_spans[0].spans, SPANS, strict=True):
            each.trace_id = bytes.fromhex(written["traceId"])
            each.span_id = bytes.fromhex(written["spanId"])
            each.parent_span_id = bytes.fromhex(written["parentSpanId"])
    message = body.SerializeToString()
    return message + message[:-5]


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
    assert case.metadata["trace"]["ended_at"] == 1_767_225_609


@pytest.mark.parametrize("start", [b"\x28\xb5\x2f\xfd", b"\0\0\1\0\x28\xb5\x2f\xfd"])
def test_zstd_is_refused_by_its_name(start, written):
    with pytest.raises(DatasetError, match="compressed with zstd; unpack it"):
        list(read_cases(written("traces.json", start + b"x" * 300)))
