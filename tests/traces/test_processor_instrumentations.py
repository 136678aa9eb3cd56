"""Span processor and file agree under the other instrumentations, which say things differently."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from instrumentors import GENAI, TRACELOOP, environment

HERE = Path(__file__).parent


@pytest.fixture
def answer(tmp_path, warm_python):
    """What an application's answer under an instrumentation comes to."""

    def run(instrumentor, app, *, content="SPAN_ONLY"):
        pytest.importorskip(instrumentor[0], reason="needs a newer OpenTelemetry than the lowest")
        done = warm_python.run(
            HERE / "processed_app.py",
            *(*instrumentor, app, tmp_path),
            cwd=tmp_path,
            env=environment(content),
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize(
    ("instrumentor", "app"), [(TRACELOOP, "chain"), (TRACELOOP, "agent"), (GENAI, "agent")]
)
def test_the_same_case(instrumentor, app, answer):
    said = answer(instrumentor, app)
    assert len(said["processor"]) == 1
    assert said["processor"] == said["file"]
    assert (said["started"], said["errors"]) == (1, 0)


@pytest.mark.parametrize(("instrumentor", "app"), [(TRACELOOP, "agent"), (GENAI, "chain")])
def test_the_same_reason_where_content_is_missing(instrumentor, app, answer):
    said = answer(instrumentor, app, content="NO_CONTENT")
    assert said["processor"] == said["file"] == []
    assert said["incomplete"] == said["left_out"] != {}
