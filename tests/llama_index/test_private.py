"""Canaries: private names, ids and context variables of LlamaIndex that are used are there."""

import pytest
from llama_index.core import DocumentSummaryIndex
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult, faithfulness, relevancy
from llama_index.core.indices.document_summary.base import DEFAULT_SUMMARY_QUERY
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.dispatcher import instrument_tags
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from workflows.runtime.types.results import WaitingForEvent

from llama_index.evaluation.ragaliq import _private
from ragaliq.traces.llama_index import OWN_PROMPTS

LLM = MockLLM()


class Finding(BaseRetriever):
    """Finds one node, and notes the current span and its tags."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def _retrieve(self, query_bundle):
        self.seen += [_private.SPAN_ID.get(), _private.TAGS.get()]
        return [NodeWithScore(node=TextNode(text="Refunds take five working days."), score=0.9)]


class Ids(SimpleSpanHandler):
    """Notes the ids of all spans."""

    _ids = PrivateAttr(default_factory=list)

    def new_span(self, id_, *given, **more):
        self._ids.append(id_)
        return super().new_span(id_, *given, **more)


@pytest.fixture
def ids():
    handler, dispatcher = Ids(), get_dispatcher()
    dispatcher.add_span_handler(handler)
    yield handler._ids
    dispatcher.span_handlers.remove(handler)


def names(ids):
    return {each[: -_private.ID_END] for each in ids}


def test_ids_of_spans_are_a_class_a_method_and_a_uuid(ids):
    reranker = SimilarityPostprocessor(similarity_cutoff=0.1)
    engine = RetrieverQueryEngine.from_args(Finding(), llm=LLM, node_postprocessors=[reranker])
    engine.query("How long do refunds take?")
    assert names(ids) >= {
        "RetrieverQueryEngine.query",
        "Finding.retrieve",
        f"SimilarityPostprocessor.{_private.RERANK}",
        "CompactAndRefine.synthesize",
        "MockLLM.predict",
    }


def test_a_synthesizer_that_shows_no_nodes_is_known_by_its_id(ids):
    get_response_synthesizer(LLM, response_mode="generation").synthesize("How long?", [])
    assert any(each.startswith(_private.GENERATION) for each in ids)


def test_a_chat_engine_writes_its_stream_in_a_span(ids):
    response = SimpleChatEngine.from_defaults(llm=LLM).stream_chat("How long?")
    assert "".join(response.response_gen)
    assert any(each.endswith(f".{_private.WRITE}") for each in names(ids))


def test_the_current_span_and_its_tags_are_in_context_variables(ids):
    retriever = Finding()
    with instrument_tags({"session_id": "s"}):
        retriever.retrieve("How long?")
    assert retriever.seen == [ids[-1], {"session_id": "s"}]


@pytest.mark.parametrize(
    "make",
    [
        lambda memory: SimpleChatEngine.from_defaults(llm=LLM, memory=memory),
        lambda memory: ContextChatEngine.from_defaults(Finding(), llm=LLM, memory=memory),
        lambda memory: CondensePlusContextChatEngine.from_defaults(
            Finding(), llm=LLM, memory=memory
        ),
        lambda memory: CondenseQuestionChatEngine.from_defaults(
            RetrieverQueryEngine.from_args(Finding(), llm=LLM), llm=LLM, memory=memory
        ),
    ],
)
def test_chat_engines_hold_their_memory_under_one_name(make):
    memory = ChatMemoryBuffer.from_defaults(llm=LLM)
    assert _private.memory_of(make(memory)) is memory


def test_a_step_that_waits_is_known_by_the_name_of_what_it_raises():
    assert issubclass(WaitingForEvent, Exception)
    assert _private.is_waiting(WaitingForEvent.__new__(WaitingForEvent))
    assert not _private.is_waiting(ValueError())


class Evaluator(BaseEvaluator):
    """Notes whether it is found as the caller."""

    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts):
        """It has none."""

    async def aevaluate(self, query=None, **given):
        return EvaluationResult(passing=self.ask())

    def ask(self):
        return _private.is_called_by(BaseEvaluator)


def test_evaluators_and_indices_that_ask_are_found_on_the_stack():
    assert Evaluator().evaluate("How long?").passing
    assert not Evaluator().ask()
    assert callable(DocumentSummaryIndex._add_nodes_to_index)


def test_traces_know_the_prompts_that_llama_index_writes_for_itself():
    templates = faithfulness.DEFAULT_EVAL_TEMPLATE, relevancy.DEFAULT_EVAL_TEMPLATE
    texts = [DEFAULT_SUMMARY_QUERY, *(template.template for template in templates)]
    assert all(own in text for own, text in zip(OWN_PROMPTS, texts, strict=True))
