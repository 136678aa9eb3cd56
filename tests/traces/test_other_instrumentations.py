"""Traces of the other real instrumentations: OpenTelemetry's own, and OpenLLMetry's."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from instrumentors import GENAI, TRACELOOP, environment
from rag_parts import ANSWER, QUESTION, REFUNDS

from ragaliq.datasets import read_cases
from ragaliq.errors import DatasetError

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def answered(tmp_path_factory, warm_python):
    """The folder with the traces of applications that answered under an instrumentation."""

    @cache
    def run(instrumentor, content):
        pytest.importorskip(instrumentor[0], reason="needs a newer OpenTelemetry than the lowest")
        folder = tmp_path_factory.mktemp("traces")
        done = warm_python.run(
            HERE / "instrumented_app.py",
            *(*instrumentor, folder),
            cwd=folder,
            env=environment(content),
        )
        assert done.returncode == 0, done.stderr
        return folder

    return run


@pytest.fixture
def traced(answered):
    """The cases of one of the applications."""

    def read(instrumentor, app, *, content="SPAN_ONLY"):
        return read_cases(answered(instrumentor, content) / f"{app}.pb")

    return read


@pytest.mark.parametrize("app", ["chain", "agent"])
def test_openllmetry(traced, app):
    (case,) = traced(TRACELOOP, app)
    assert case.query == QUESTION
    assert case.context_texts == REFUNDS
    assert case.response == (ANSWER if app == "chain" else "Five days.")


def test_openllmetry_s_requests_below_one_that_is_over(traced):
    found = traced(TRACELOOP, "batch")
    assert {case.query: case.context_texts for case in found} == {
        f"{QUESTION} {number}": REFUNDS for number in (1, 2, 3)
    }


def test_opentelemetry_s_own_with_what_a_tool_gave_the_model(traced):
    (case,) = traced(GENAI, "agent")
    assert (case.query, case.response) == (QUESTION, "Five days.")
    assert case.context_texts == ["\n\n".join(REFUNDS)]


def test_opentelemetry_s_own_keeps_no_texts_of_a_chain_s_documents(traced):
    reader = traced(GENAI, "chain")
    with pytest.raises(DatasetError, match="1 content_hidden"):
        list(reader)


@pytest.mark.parametrize("instrumentor", [GENAI, TRACELOOP])
def test_without_content_there_is_no_case(traced, instrumentor):
    reader = traced(instrumentor, "agent", content="NO_CONTENT")
    with pytest.raises(DatasetError, match="can be evaluated"):
        list(reader)
    assert "content_hidden" in reader.skipped_runs or "not_rag" in reader.skipped_runs
