"""Recorded spans given to a span processor in the order in which they started and ended."""

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from ragaliq.traces.files import spans_in


class _Attributes(dict):
    """Attributes of any type, as a file has them; an SDK's have `copy` too."""

    def copy(self):
        return dict(self)


def _context(span, span_id):
    return SpanContext(int(span.trace_id, 16), int(span_id, 16), False, TraceFlags(1))


def _sdk_span(span, *, has_ended, attributes):
    made = ReadableSpan(
        span.name,
        _context(span, span.span_id),
        _context(span, span.parent_id) if span.parent_id else None,
        events=[Event(e.name, dict(e.attributes)) for e in span.events] if has_ended else (),
        status=Status(StatusCode.ERROR if span.is_error else StatusCode.UNSET),
        start_time=span.start_ns,
        end_time=span.end_ns if has_ended else None,
        instrumentation_scope=InstrumentationScope(span.scope),
    )
    made._attributes = _Attributes(attributes)
    return made


def replay(path, processor, *, is_late):
    """Replay a file's spans; `is_late` where attributes are set after a span's start."""
    spans = {span.span_id: span for span in spans_in(path)}

    def depth(span):
        around = spans.get(span.parent_id)
        return 0 if around is None else 1 + depth(around)

    moments = []
    for span in spans.values():
        moments.append((span.start_ns, 0, depth(span), span))
        moments.append((span.end_ns, 1, -depth(span), span))
    for _, has_ended, _, span in sorted(moments, key=lambda moment: moment[:3]):
        held = {} if is_late and not has_ended else span.attributes
        made = _sdk_span(span, has_ended=bool(has_ended), attributes=held)
        (processor.on_end if has_ended else processor.on_start)(made)
