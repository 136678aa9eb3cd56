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


@pytest.mark.parametrize("attached", [False, True])
@pytest.mark.parametrize("ambient", [False, True])
@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_it_is_the_span_of_the_whole_chain(found, way, ambient, attached):
    rows, source, name = found
    wanted = {"way": way, "attached": attached, "ambient": ambient}
    (row,) = [row for row in rows if wanted.items() <= row.items()]
    assert (row["source"], row["span"]) == (source, name.format("rag"))


@pytest.mark.parametrize("attached", [False, True])
def test_runs_at_the_same_time_link_to_their_own_spans(found, attached):
    rows, _, name = found
    together = [row for row in rows if row["way"] == "gather" and row["attached"] is attached]
    assert len(together) == 10
    for row in together:
        assert row["span"] == name.format("rag" + row["question"].removesuffix("?"))
