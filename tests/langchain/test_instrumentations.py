"""The evaluation finds its span under each real instrumentation that makes its spans current."""

import json
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
INSTRUMENTATIONS = {
    "traceloop": (
        ("opentelemetry.instrumentation.langchain", "LangchainInstrumentor"),
        ("traceloop", "{}.workflow"),
    ),
    "opentelemetry": (
        ("opentelemetry.instrumentation.genai.langchain", "LangChainInstrumentor"),
        ("current", "invoke_workflow {}"),
    ),
}


@pytest.fixture(scope="module", params=INSTRUMENTATIONS)
def found(request, tmp_path_factory, warm_python):
    """What was found under an instrumentation, and what should have been."""
    instrumentor, (source, name) = INSTRUMENTATIONS[request.param]
    pytest.importorskip(instrumentor[0], reason="needs a newer OpenTelemetry than the lowest one")
    done = warm_python.run(
        HERE / "instrumented.py",
        *instrumentor,
        cwd=tmp_path_factory.mktemp("instrumented"),
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], source, name


def test_it_is_the_span_of_the_whole_chain_in_every_way_to_call_it(found):
    rows, source, name = found
    assert len(rows) == 36
    for row in rows:
        number = row["question"].removesuffix("?") if row["way"] == "gather" else ""
        assert (row["source"], row["span"]) == (source, name.format("rag" + number)), row
