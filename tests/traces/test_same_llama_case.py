"""An instrumented LlamaIndex application gives the same case both ways."""

from __future__ import annotations

import json

import pytest
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.llms import CustomLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import CitationQueryEngine, RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from otlp import FORMS

from llama_index.evaluation.ragaliq import attach, detach
from ragaliq.datasets import read_cases

# OpenInference reads a model's settings in the old way.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.usefixtures("loop_of_synchronous_calls"),
]

QUESTION = "How long do refunds take?"


class Shelf(BaseRetriever):
    """Nodes with metadata, of which the model is not to see everything, and without a score."""

    def _retrieve(self, query_bundle):
        hidden = {"excluded_llm_metadata_keys": ["page"]}
        first = TextNode(
            id_="n1", text="Refunds take five days. äöü", metadata={"by": "A", "page": 3}, **hidden
        )
        return [
            NodeWithScore(node=first, score=0.5),
            NodeWithScore(node=TextNode(id_="n2", text="Shops open at nine."), score=None),
        ]


class Backwards(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        return [NodeWithScore(node=n.node, score=0.75) for n in reversed(nodes)]


class Clerk(CustomLLM):
    @property
    def metadata(self):
        return LLMMetadata()

    def complete(self, prompt, formatted=False, **kwargs):
        return CompletionResponse(text="It takes five days [1].")

    def stream_complete(self, prompt, formatted=False, **kwargs):
        yield CompletionResponse(text="It takes five days.", delta="It takes five days.")


class Desk(Workflow):
    @step
    async def work(self, ev: StartEvent) -> StopEvent:
        engine = RetrieverQueryEngine.from_args(Shelf(), llm=Clerk())
        return StopEvent(result=await engine.aquery(ev.question))


def query(**options):
    return RetrieverQueryEngine.from_args(Shelf(), llm=Clerk(), **options)


APPS = {
    "query": lambda: query().query(QUESTION),
    "reranked": lambda: query(node_postprocessors=[Backwards()]).query(QUESTION),
    "refined": lambda: query(response_mode=ResponseMode.REFINE).query(QUESTION),
    "chat": lambda: ContextChatEngine.from_defaults(
        Shelf(), llm=Clerk(), memory=ChatMemoryBuffer.from_defaults(token_limit=10_000)
    ).chat(QUESTION),
    "citations": lambda: CitationQueryEngine(Shelf(), llm=Clerk()).query(QUESTION),
}


def as_bytes(case):
    """Everything of a case but how it is called."""
    held = case.model_dump(mode="json", exclude={"id", "tags", "metadata"})
    return json.dumps(held).encode()


@pytest.fixture(autouse=True)
def _both(tracing, watched):
    LlamaIndexInstrumentor().instrument(tracer_provider=tracing.provider, skip_dep_check=True)
    attach(watched.monitor)
    yield
    detach()
    LlamaIndexInstrumentor().uninstrument()


def assert_the_same(tracing, watched, written):
    (live,) = watched.cases()
    for name, form in FORMS.items():
        (case,) = read_cases(written(name, form(tracing.spans())))
        assert as_bytes(case) == as_bytes(live), name
    return live


@pytest.mark.parametrize("app", APPS)
def test_a_query_or_a_chat(app, tracing, watched, written):
    APPS[app]()
    live = assert_the_same(tracing, watched, written)
    assert live.query == QUESTION
    assert len(live.context) == 2


async def test_an_asynchronous_query(tracing, watched, written):
    await query().aquery(QUESTION)
    assert_the_same(tracing, watched, written)


async def test_a_workflow_around_an_engine(tracing, watched, written):
    await Desk().run(question=QUESTION)
    assert_the_same(tracing, watched, written)


def test_a_streamed_answer_is_in_no_span(tracing, watched, written):
    query().query(QUESTION)
    list(query(streaming=True).query(QUESTION).response_gen)
    reader = read_cases(written("t.pb", FORMS["traces.pb"](tracing.spans())))
    assert len(list(reader)) == 1
    assert reader.left_out["answer_streamed"] == 1
