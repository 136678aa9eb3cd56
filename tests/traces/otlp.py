"""Spans of the SDK as OTLP, through the exporter's own encoder."""

import base64
import gzip
import json

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

_IDS = ("traceId", "spanId", "parentSpanId")


def protobuf(spans):
    return encode_spans(spans).SerializeToString()


def document(spans):
    """An export request as JSON: ids in hexadecimal digits, as the protocol has it."""
    request = MessageToDict(encode_spans(spans))
    for of_resource in request["resourceSpans"]:
        for of_scope in of_resource["scopeSpans"]:
            for span in of_scope["spans"]:
                span |= {k: base64.b64decode(span[k]).hex() for k in _IDS if k in span}
    return request


def a_span_a_line(spans):
    """As the collector's file exporter writes requests, here of one span each, the last first."""
    lines = [json.dumps(document([span])) for span in reversed(spans)]
    return gzip.compress(("\n".join(lines) + "\n").encode())


def framed(spans):
    """Requests in protobuf, each after its length in four bytes."""
    messages = [protobuf([span]) for span in spans]
    return b"".join(len(message).to_bytes(4, "big") + message for message in messages)


def varint_framed(spans):
    message = protobuf(spans)
    length, head = len(message), []
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*head, length]) + message


def console(spans):
    """As the SDK's console exporter prints them."""
    return "\n".join(span.to_json() for span in spans)


FORMS = {
    "traces.otlp.json": lambda spans: json.dumps(document(spans)),
    "traces.pretty.json": lambda spans: json.dumps(document(spans), indent=2),
    "traces.jsonl.gz": a_span_a_line,
    "traces.pb": protobuf,
    "traces.framed": framed,
    "traces.delimited.bin": varint_framed,
    "console.txt": console,
}
