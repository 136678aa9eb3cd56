"""Types of the public API, as the applications that use it see them; read by mypy, never run.

`assert_type` holds what a name gives. A `type: ignore` with its code holds what mypy must refuse:
one that is not needed is an error of its own.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, assert_type

from langchain_core.runnables import Runnable
from llama_index.evaluation import ragaliq as llama_index_ragaliq

import langchain_ragaliq
from langchain_ragaliq import RagaliqCallbackHandler, RagaliqGuard
from ragaliq import (
    BatchingJudge,
    Budget,
    ClaimDetail,
    ClaimsResult,
    ClaimVerdict,
    ClaudeJudge,
    ContextChunk,
    CostEstimate,
    Evaluation,
    EvaluationJob,
    EvaluationRecord,
    EvaluationResult,
    EvaluationRun,
    FaithfulnessEvaluator,
    Guard,
    GuardResult,
    JudgeResult,
    LLMJudge,
    LocalJudge,
    MetricSummary,
    Monitor,
    MonitorStats,
    OnTag,
    RAGTestCase,
    RunHandle,
    RunInfo,
    Sampling,
    Scorer,
    Sink,
    Status,
    Verdict,
    estimate,
    evaluate,
    evaluate_async,
    read_records,
    resolve_judge,
    score_batch,
    suppress,
)
from ragaliq.datasets import read_cases
from ragaliq.judges import parse_verdicts
from ragaliq.testing import ScriptedJudge

case = RAGTestCase(
    query="How long do refunds take?",
    context=["Refunds are paid within five working days.", ContextChunk(text="Cash is not paid.")],
    response="Five working days.",
)
assert_type(case.context, list[str | ContextChunk])
assert_type(case.expected_answer, str | None)
RAGTestCase(query="q", context=["c"])  # type: ignore[call-arg]


class OwnJudge(LLMJudge):
    """A judge with the three methods that a judge must have."""

    async def extract_claims(self, response: str) -> ClaimsResult:
        return ClaimsResult(claims=[response])

    async def verify_claim(self, claim: str, context: list[str]) -> ClaimVerdict:
        return ClaimVerdict(verdict="SUPPORTED", evidence=context[0])

    async def evaluate_relevance(self, query: str, response: str) -> JudgeResult:
        return JudgeResult(score=1.0, reasoning="")


class OwnSink:
    """A sink is what has its three members; it inherits from nothing."""

    name = "own"

    async def write(self, records: Sequence[EvaluationRecord]) -> None:
        assert_type([each.results for each in records], list[dict[str, EvaluationResult]])

    async def aclose(self) -> None:
        """Nothing is open."""


sink: Sink = OwnSink()
assert_type(resolve_judge("local"), LLMJudge)
batching: BatchingJudge = ClaudeJudge(api_key="key")
scripted: LLMJudge = ScriptedJudge()


def offline() -> None:
    """Evaluations of files, lists and applications."""
    run = evaluate([case], metrics=["faithfulness", FaithfulnessEvaluator(0.9)], judge=OwnJudge())
    assert_type(run, EvaluationRun)
    assert_type(run[0], Evaluation)
    assert_type(run[0].results["faithfulness"], EvaluationResult)
    assert_type(run[0].results["faithfulness"].score, float | None)
    assert_type(run[0].results["faithfulness"].passed, bool | None)
    assert_type(run[0].results["faithfulness"].status, Status)
    assert_type(run[0].results["faithfulness"].claims, tuple[ClaimDetail, ...])
    assert_type(run.metrics, Mapping[str, MetricSummary])
    assert_type(run.failures, list[Evaluation])
    assert_type(run.write_report("report.html"), Path)
    assert_type(estimate([case], judge="claude"), CostEstimate)
    assert_type(list(read_cases("answers.csv")), list[RAGTestCase])
    assert_type(list(read_records("results.db")), list[EvaluationRecord])
    assert_type(parse_verdicts("[]", 0)[0].verdict, Verdict)
    evaluate([case], judge=LocalJudge, metrics="faithfulness")  # type: ignore[arg-type]
    evaluate([case], evaluators=["faithfulness"])  # type: ignore[call-arg]
    score_batch([{"question": "q"}], judge="local")


async def asynchronous() -> None:
    """The same where an event loop runs."""
    assert_type(await evaluate_async([case]), EvaluationRun)
    assert_type(await FaithfulnessEvaluator().evaluate(case, OwnJudge()), EvaluationResult)
    job = EvaluationJob([case], Scorer("local", ["faithfulness"]), goals=["faithfulness=0.8", 0.9])
    stream: AsyncIterator[Evaluation] = aiter(job)
    async for evaluation in stream:
        assert_type(evaluation.run, RunInfo)
    assert_type(job.is_cut, bool)


def live() -> None:
    """Monitors, handlers and guards."""
    monitor = Monitor(
        judge="local",
        metrics=["faithfulness"],
        sampling=Sampling(rules=[OnTag("gold")], rate=0.1),
        budget=Budget(usd_per_day=5.0),
        sinks=["sqlite:///results.db", sink],
        on_result=lambda evaluation: assert_type(evaluation, Evaluation),
    )
    assert_type(monitor.submit(case), bool)
    assert_type(monitor.begin("run"), RunHandle | None)
    assert_type(monitor.evaluate(case), Evaluation)
    assert_type(monitor.stats(), MonitorStats)
    assert_type(monitor.flush(), bool)

    @monitor.trace
    def answer(question: str, *, pages: int = 3) -> str:
        return f"{question} {pages}"

    assert_type(answer("Why?", pages=4), str)
    answer(1)  # type: ignore[arg-type]

    @monitor.trace(pipeline="shop")
    async def answer_later(question: str) -> str:
        return question

    later: Callable[[str], object] = answer_later
    later("Why?")
    with suppress():
        monitor.submit("no case")  # type: ignore[arg-type]
    Monitor(sample_rate="often")  # type: ignore[arg-type]
    Monitor(judges="local")  # type: ignore[call-arg]


def guards(chain: Runnable[str, str]) -> None:
    """Answers that are held back."""
    result = Guard(metrics=["faithfulness"], on_unscored="pass", judge="local").check(case)
    assert_type(result, GuardResult)
    assert_type(result.passes, bool)
    Guard(on_unscored="perhaps")  # type: ignore[arg-type]
    guarded = RagaliqGuard(chain, action="annotate", judge="local")
    assert_type(guarded.invoke("Why?"), Any)


def adapters() -> None:
    """Handlers of both frameworks."""
    handler = langchain_ragaliq.attach(judge="local", sample_rate=0.1)
    assert_type(handler.monitor, Monitor)
    assert_type(RagaliqCallbackHandler(judge="local").monitor, Monitor)
    other = llama_index_ragaliq.attach(judge="local")
    assert_type(other.monitor, Monitor)
