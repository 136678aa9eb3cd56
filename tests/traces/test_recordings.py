"""Traces that applications of other frameworks really wrote, each of a scripted run.

Each asks twice how long refunds take, and answers from the documents with a second sentence that
is invented; crew, smolagents and the like through a tool, the others through a retriever.
"""

from pathlib import Path

import pytest
from replaying import replay

from ragaliq import Monitor
from ragaliq.datasets import read_cases
from ragaliq.errors import DatasetError
from ragaliq.testing import ScriptedJudge
from ragaliq.traces import RagaliqSpanProcessor

RECORDINGS = Path(__file__).parent / "recordings"
QUESTION = "How long do refunds take?"
ANSWER = "Refunds are paid within five working days. They come in cash."
THREE = (
    "Refunds are paid within five working days.",
    "The shop is open from nine to five on weekdays.",
    "Bicycles can be returned within 30 days.",
)
JOINED = ("\n".join(THREE),)


def texts_of(case):
    return case.query, case.context_texts, case.prompt_context, case.response


CONTEXTS = {
    "adk-oi": JOINED,
    "adk-own": JOINED,
    "anthropic-gen": JOINED,
    "crew-oi": JOINED,
    "crew-openllmetry": JOINED,
    "dspy-react": JOINED,
    "dspy2-rm": THREE,
    "gen-openai": THREE,
    "genkit-flow": THREE,
    "haystack-oi": THREE[:1],
    "langfuse-langchain": THREE,
    "langsmith-functions": THREE,
    "langsmith-agent": JOINED,
    "langsmith-openai": THREE,
    "langtrace-chroma": THREE,
    "llamaindex-agent-openllmetry": JOINED,
    "logfire-agents": JOINED,
    "logfire-anthropic": THREE,
    "logfire-openai": THREE,
    "logfire-pydai-stream": JOINED,
    "mastra-agent": JOINED,
    "mlflow-traced": THREE,
    "oai-oiagents": JOINED,
    "oitracer-sources": THREE,
    "pydai-native": THREE,
    "smol-oi": JOINED,
    "tl-plain": THREE,
    "vercel5oi-generate": JOINED,
    "voltagent-agent": JOINED,
}
HIDDEN = ("autogen-own", "openllmetry-qdrant")
"""Their spans show a search without its texts."""


@pytest.mark.parametrize("name", CONTEXTS)
def test_question_context_and_answer(name):
    cases = list(read_cases(RECORDINGS / f"{name}.otlp.json.gz"))
    found = [(case.query, tuple(case.context_texts), case.response) for case in cases]
    assert found == [(QUESTION, CONTEXTS[name], ANSWER)] * 2


@pytest.mark.parametrize("is_late", [False, True], ids=["at once", "late"])
@pytest.mark.parametrize("name", CONTEXTS)
def test_what_is_scored_live_is_what_the_file_has(name, is_late):
    live, path = [], RECORDINGS / f"{name}.otlp.json.gz"
    monitor = Monitor(judge=ScriptedJudge(), on_result=lambda result: live.append(result.case))
    processor = RagaliqSpanProcessor(monitor)
    replay(path, processor, is_late=is_late)
    processor.force_flush()
    monitor.close()
    assert processor.errors == 0
    assert list(map(texts_of, live)) == list(map(texts_of, read_cases(path)))


@pytest.mark.parametrize("name", HIDDEN)
def test_a_search_whose_texts_no_span_holds_makes_no_case(name):
    reader = read_cases(RECORDINGS / f"{name}.otlp.json.gz")
    with pytest.raises(DatasetError, match="content_hidden"):
        list(reader)
    assert reader.skipped_runs == {"content_hidden": 2}


def test_every_recording_is_read():
    names = {path.name.removesuffix(".otlp.json.gz") for path in RECORDINGS.glob("*.gz")}
    assert names == {*CONTEXTS, *HIDDEN}
