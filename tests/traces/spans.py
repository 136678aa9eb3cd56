"""Spans as an application writes them by hand, by OpenInference's convention."""

from contextlib import contextmanager

from opentelemetry import trace

QUESTION = "How long do refunds take?"
TEXTS = ["Refunds take five days.", "Shops open at nine."]
ANSWER = "Five days."


class Spans:
    """An application that traces itself.

    Args:
        provider: Where its spans go.
        scope: The name it gives itself.
        late: Whether it says only at the end what a span is.
    """

    def __init__(self, provider, scope="app", *, late=False):
        self.provider = provider
        self.tracer = provider.get_tracer(scope)
        self.web = provider.get_tracer("opentelemetry.instrumentation.fastapi")
        self.late = late
        self.last = None
        self.ended_at = 0.0

    @contextmanager
    def request(self):
        with self.web.start_as_current_span("POST /ask", kind=trace.SpanKind.SERVER):
            yield

    @staticmethod
    def inside(span):
        return trace.use_span(span, end_on_exit=False)

    @contextmanager
    def span(self, name, kind=None, asked=None, **more):
        held = {"input.value": asked} if asked is not None else {}
        held |= more
        marked = {} if kind is None else {"openinference.span.kind": kind}
        with self.tracer.start_as_current_span(name, attributes={} if self.late else marked) as s:
            s.set_attributes(held | marked)
            yield s
        self.last = s.get_span_context()
        self.ended_at = getattr(s, "end_time", 0) / 1e9

    @staticmethod
    def say(span, *, output):
        span.set_attribute("output.value", output)

    def retrieve(self, texts=TEXTS):
        found = {f"retrieval.documents.{n}.document.content": t for n, t in enumerate(texts)}
        with self.span("retriever", kind="RETRIEVER", asked=QUESTION, **found):
            pass

    def answer(self, text=ANSWER, shown=()):
        messages = {
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "\n".join((*shown, QUESTION)),
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": text,
        }
        with self.span("model", kind="LLM", **messages):
            pass

    def chain(self, question=QUESTION, texts=TEXTS, session=None):
        more = {} if session is None else {"session.id": session}
        with self.span("rag", kind="CHAIN", asked=question, **more) as root:
            self.retrieve(texts)
            self.answer()
            self.say(root, output=ANSWER)
