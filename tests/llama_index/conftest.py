import gc
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.llms.types import (
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from llama_index.evaluation.ragaliq import attach, detach
from ragaliq import (
    ClaimsResult,
    ClaimVerdict,
    JudgeResult,
    LLMJudge,
)
from recording_monitor import RecordingMonitor

PARTS = str(Path(__file__).parents[1] / "applications")
if PARTS not in sys.path:
    sys.path.insert(0, PARTS)


class ScriptedLLM(CustomLLM):
    """Answers with what `reply` makes of the prompt, in words when streaming."""

    reply: Callable[[str], str]

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(num_output=64, context_window=100_000)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self.reply(prompt))

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        def words() -> CompletionResponseGen:
            text = ""
            for word in re.findall(r"\s*\S+", self.reply(prompt)):
                text += word
                yield CompletionResponse(text=text, delta=word)

        return words()


class TableRetriever(BaseRetriever):
    """Returns the nodes that `find` has for a question."""

    def __init__(self, find: Callable[[str], list[NodeWithScore]]) -> None:
        super().__init__()
        self.find = find

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.find(query_bundle.query_str)


class SentenceJudge(LLMJudge):
    """Takes every sentence for a claim, and every claim found in the context for supported."""

    name = "sentences"

    def __init__(self, *, error=None):
        self.error = error
        self.calls = 0

    async def extract_claims(self, response):
        self.calls += 1
        if self.error is not None:
            raise self.error
        return ClaimsResult(claims=re.findall(r"[^.]+\.", response), tokens_used=10)

    async def verify_claim(self, claim, context):
        holders = [place for place, text in enumerate(context) if claim.strip() in text]
        return ClaimVerdict(
            verdict="SUPPORTED" if holders else "NOT_ENOUGH_INFO",
            supporting_chunk_ids=holders,
            reason="" if holders else "nowhere to be found",
            tokens_used=1,
        )

    async def evaluate_relevance(self, query, response):
        self.calls += 1
        if self.error is not None:
            raise self.error
        return JudgeResult(score=0.9, reasoning="to the point", tokens_used=5)


def make_nodes(*texts: str, prefix: str = "n", **metadata: str) -> list[NodeWithScore]:
    return [
        NodeWithScore(
            node=TextNode(text=text, id_=f"{prefix}{number}", metadata=metadata),
            score=1.0 - number / 10,
        )
        for number, text in enumerate(texts)
    ]


DOCS = ("Refunds take five days.", "The shop opens at nine.")


@pytest.fixture(autouse=True)
def _an_event_loop(loop_of_synchronous_calls):
    """For the tests here, every one of which may call LlamaIndex synchronously."""


@pytest.fixture(autouse=True)
def dispatcher():
    """LlamaIndex's root dispatcher; no handler of ragaliq's outlives a test."""
    yield get_dispatcher()
    detach()


@pytest.fixture
def new_monitor():
    made = []

    def build(**options):
        made.append(RecordingMonitor(**options))
        return made[-1]

    yield build
    detach()
    for monitor in made:
        monitor.close(5)


@pytest.fixture
def monitor(new_monitor):
    return new_monitor()


@pytest.fixture
def handler(monitor):
    """A handler on the monitor; at the test's end nothing may be left behind."""
    attached = attach(monitor, pipeline="shop")
    yield attached
    gc.collect()
    assert monitor.flush(30)
    assert attached.errors == 0
    assert (attached.runs_in_progress, monitor.stats().pending) == (0, 0)
    assert not attached._runs.runs
    assert not attached._ignored
    assert not attached._awaited


@pytest.fixture
def nodes():
    return make_nodes


@pytest.fixture
def docs():
    return list(DOCS)


@pytest.fixture
def llm():
    return ScriptedLLM(reply=lambda prompt: "Refunds take five days.")


@pytest.fixture
def scripted_llm():
    return ScriptedLLM


@pytest.fixture
def retriever_class():
    return TableRetriever


@pytest.fixture
def retriever(nodes):
    return TableRetriever(lambda question: nodes(*DOCS))


@pytest.fixture
def engine(retriever, llm):
    """Builds a query engine over two fixed documents."""

    def build(**settings: Any) -> RetrieverQueryEngine:
        settings.setdefault("llm", llm)
        return RetrieverQueryEngine.from_args(settings.pop("retriever", retriever), **settings)

    return build


@pytest.fixture
def judge():
    return SentenceJudge()


@pytest.fixture
def judge_class():
    return SentenceJudge
