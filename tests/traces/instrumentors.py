"""The other instrumentations, and the variables that applications under them are started with."""

import os
import sys

GENAI = ("opentelemetry.instrumentation.genai.langchain", "LangChainInstrumentor")
TRACELOOP = ("opentelemetry.instrumentation.langchain", "LangchainInstrumentor")


def environment(content):
    """With or without texts in the spans: SPAN_ONLY or NO_CONTENT."""
    return {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": content,
        "TRACELOOP_TRACE_CONTENT": "false" if content == "NO_CONTENT" else "true",
    }
