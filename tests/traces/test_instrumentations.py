"""The other real instrumentations, OpenTelemetry's own and OpenLLMetry's, live and in a file."""

import json
import os
import sys
from pathlib import Path

import pytest
from instrumentors import GENAI, TRACELOOP
from rag_parts import ANSWER, QUESTION, REFUNDS

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def answered(tmp_path_factory, warm_python):
    """What an application's answers under an instrumentation come to."""
    folder = tmp_path_factory.mktemp("traces")
    env = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = warm_python.run(HERE / "processed_app.py", folder, cwd=folder, env=env)

    def read(instrumentor, content):
        pytest.importorskip(instrumentor[0], reason="needs a newer OpenTelemetry than the lowest")
        path = folder / f"{instrumentor[0]}-{content}.json"
        assert path.exists(), done.stderr
        return json.loads(path.read_text())

    return read


@pytest.fixture
def cases(answered):
    """Question, texts and answer of an application's cases, by question; live and in the file."""

    def read(instrumentor, app):
        said = answered(instrumentor, "SPAN_ONLY")[app]
        assert said["errors"] == 0
        both = (
            sorted(said[door], key=lambda case: case["query"]) for door in ("processor", "file")
        )
        live, in_file = (
            [(c["query"], [chunk["text"] for chunk in c["context"]], c["response"]) for c in found]
            for found in both
        )
        assert live == in_file
        return in_file

    return read


@pytest.mark.parametrize(
    ("app", "answer"), [("chain", ANSWER), ("agent", "Five days."), ("graph", ANSWER)]
)
def test_openllmetry(cases, app, answer):
    assert cases(TRACELOOP, app) == [(QUESTION, REFUNDS, answer)]


def test_openllmetry_s_requests_below_one_that_is_over(cases):
    found = cases(TRACELOOP, "batch")
    assert found == [(f"{QUESTION} {number}", REFUNDS, ANSWER) for number in (1, 2, 3)]


def test_opentelemetry_s_own_with_what_a_tool_gave_the_model(cases):
    assert cases(GENAI, "agent") == [(QUESTION, ["\n\n".join(REFUNDS)], "Five days.")]


def test_opentelemetry_s_own_keeps_no_texts_of_a_chain_s_documents(answered):
    said = answered(GENAI, "SPAN_ONLY")["chain"]
    assert said["processor"] == said["file"] == []
    assert said["incomplete"] == said["skipped"] == {"content_hidden": 1}


@pytest.mark.parametrize("instrumentor", [GENAI, TRACELOOP])
def test_without_content_there_is_no_case(answered, instrumentor):
    said = answered(instrumentor, "NO_CONTENT")["agent"]
    assert said["processor"] == said["file"] == []
    assert said["incomplete"] == said["skipped"] != {}
