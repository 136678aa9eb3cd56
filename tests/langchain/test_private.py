"""The private names of tracers that spans are found by are still there, or nothing is found."""

import sys
import uuid
from types import SimpleNamespace

import pytest
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from langchain_ragaliq._private import span_by_run_id


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_openinference_s_tracer_can_be_asked():
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=TracerProvider(), skip_dep_check=True)
    try:
        assert callable(instrumentor._tracer.get_span)
        assert span_by_run_id(uuid.uuid4()) is None
    finally:
        instrumentor.uninstrument()


def test_traceloop_s_handler_keeps_spans_by_run():
    handler = pytest.importorskip("opentelemetry.instrumentation.langchain.callback_handler")
    spans = pytest.importorskip("opentelemetry.instrumentation.langchain.span_utils")
    assert "span" in spans.SpanHolder.__dataclass_fields__
    made = handler.TraceloopCallbackHandler(trace.get_tracer("test"), None, None)
    assert made.spans == {}


def test_langfuse_s_handler_keeps_spans_by_run():
    langfuse = pytest.importorskip("langfuse.langchain", reason="a peer that CI does not install")
    assert langfuse.CallbackHandler(public_key="")._runs == {}


class Elsewhere:
    """A handler of Langfuse's as it may be one day."""

    __module__ = "langfuse.langchain"
    _runs = None
    runs = 7


def test_a_handler_that_keeps_spans_elsewhere_is_as_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "langfuse.langchain", SimpleNamespace())
    assert span_by_run_id(uuid.uuid4(), SimpleNamespace(handlers=[Elsewhere()])) is None
