"""Span processor and file agree under the other instrumentations, which say things differently."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
GENAI = ("opentelemetry.instrumentation.genai.langchain", "LangChainInstrumentor")
TRACELOOP = ("opentelemetry.instrumentation.langchain", "LangchainInstrumentor")


def answer(instrumentor, app, folder, *, content="SPAN_ONLY"):
    done = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", str(HERE / "processed_app.py")),
            *(*instrumentor, app, str(folder)),
        ],
        env={
            "PYTHONPATH": os.pathsep.join(sys.path),
            "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": content,
            "TRACELOOP_TRACE_CONTENT": "false" if content == "NO_CONTENT" else "true",
        },
        capture_output=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("instrumentor", "app"), [(TRACELOOP, "chain"), (TRACELOOP, "agent"), (GENAI, "agent")]
)
def test_the_same_case(instrumentor, app, tmp_path):
    said = answer(instrumentor, app, tmp_path)
    assert len(said["processor"]) == 1
    assert said["processor"] == said["file"]
    assert (said["started"], said["errors"]) == (1, 0)


@pytest.mark.parametrize(("instrumentor", "app"), [(TRACELOOP, "agent"), (GENAI, "chain")])
def test_the_same_reason_where_content_is_missing(instrumentor, app, tmp_path):
    said = answer(instrumentor, app, tmp_path, content="NO_CONTENT")
    assert said["processor"] == said["file"] == []
    assert said["incomplete"] == said["left_out"] != {}
