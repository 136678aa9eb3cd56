from __future__ import annotations

import gc
import re
import sys
import threading
from collections import Counter
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
    is_suppressed,
)

PARTS = str(Path(__file__).parents[1] / "applications")
if PARTS not in sys.path:
    sys.path.insert(0, PARTS)


class RecordingTicket:
    """Behaves like ragaliq's ticket: ends once."""

    probability = 1.0

    def __init__(self, monitor, run_id):
        self.monitor, self.run_id, self.ended = monitor, run_id, threading.Lock()

    def submit(self, case, *, target=None, session_id=None, response_id=None):
        if not self.ended.acquire(blocking=False):
            return False
        self.monitor.cases.append(case.build())
        self.monitor.targets.append(target)
        self.monitor.sessions.append(session_id)
        return True

    def withdraw(self):
        if self.ended.acquire(blocking=False):
            self.monitor.withdrawn += 1

    def discard(self, reason):
        if self.ended.acquire(blocking=False):
            self.monitor.reasons.append(reason)


class RecordingMonitor:
    """A monitor's side towards adapters, with everything it was told."""

    def __init__(self, *, sampled=lambda run_id: True):
        self.sampled, self.sampled_out, self.withdrawn = sampled, 0, 0
        self.begun, self.cases, self.targets, self.sessions, self.reasons = [], [], [], [], []

    def sweep_later(self, delay, sweepable):
        return False

    def begin(self, run_id, *, pipeline="", framework=""):
        if is_suppressed():
            return None
        self.begun.append((run_id, pipeline, framework))
        if not self.sampled(run_id):
            self.sampled_out += 1
            return None
        return RecordingTicket(self, run_id)

    @property
    def open(self):
        ended = self.sampled_out + self.withdrawn + len(self.cases) + len(self.reasons)
        return len(self.begun) - ended

    @property
    def only(self):
        """Question, contexts and answer of the one run there was."""
        assert (len(self.begun), self.reasons) == (1, []), (self.begun, self.reasons)
        (case,) = self.cases
        return case.query, case.context_texts, case.response

    @property
    def outcomes(self):
        return Counter(self.reasons) + Counter({"submitted": len(self.cases)})


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
def monitor():
    return RecordingMonitor()


@pytest.fixture
def handler(monitor):
    """A handler on the recording monitor; at the test's end nothing may be left behind."""
    attached = attach(monitor, pipeline="shop")
    yield attached
    gc.collect()
    assert attached.errors == 0
    assert (attached.runs_in_progress, monitor.open) == (0, 0)
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
def monitor_class():
    return RecordingMonitor


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
