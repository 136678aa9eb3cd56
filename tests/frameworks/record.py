"""Ask one application twice, in its own environment, and say what became of its answers as JSON.

    python record.py NAME FOLDER

Live through `RagaliqSpanProcessor`, and from the file of the same spans.
"""

import json
import os
import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

os.environ |= {
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE": "true",
    "HAYSTACK_CONTENT_TRACING_ENABLED": "true",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OPENAI_API_KEY": "none",
    "LITELLM_LOCAL_MODEL_COST_MAP": "true",
    "OPENAI_AGENTS_DISABLE_TRACING": "0",
}

from applications import APPLICATIONS
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from scripted_models import QUESTION, scripted_models

from ragaliq import DatasetError, Monitor
from ragaliq.testing import ScriptedJudge
from ragaliq.traces import RagaliqSpanProcessor, TraceReader


def said(case):
    return [case.query, case.context_texts, case.response, case.sources.context]


def installed(packages):
    for name in (re.split(r"[\[<]", each)[0] for each in packages):
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            yield name


def main(name, folder):
    app = APPLICATIONS[name]
    live, exporter, provider = [], InMemorySpanExporter(), TracerProvider()
    monitor = Monitor(judge=ScriptedJudge(), on_result=live.append)
    provider.add_span_processor(RagaliqSpanProcessor(monitor))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    with scripted_models() as url:
        ask = app.make(provider, url)
        for _ in range(2):
            ask(QUESTION)
        provider.force_flush()
        monitor.flush(30)
    path = Path(folder) / f"{name}.pb"
    path.write_bytes(encode_spans(exporter.get_finished_spans()).SerializeToString())
    try:
        reader = TraceReader(path)
        in_file = [said(case) for case in reader]
    except DatasetError:
        in_file = []
    stats = monitor.stats()
    not_rag = {name: count for name, count in stats.outcomes.items() if name == "not_rag"}
    row = {
        "versions": list(installed(app.packages)),
        "live": [said(result.case) for result in live],
        "live_reasons": {**stats.incomplete, **not_rag},
        "file": in_file,
        "file_reasons": dict(reader.skipped_runs),
    }
    (Path(folder) / f"{name}.json").write_text(json.dumps(row, indent=1))
    os._exit(0)


main(*sys.argv[1:])
