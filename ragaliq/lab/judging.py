"""Let a judge decide labelled claims."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from pydantic import BaseModel, ConfigDict, Field

from ragaliq.core.results import (
    UNCALIBRATED,
    ClaimDetail,
    Evaluation,
    EvaluationResult,
    JudgeUsage,
    Status,
    Verdict,
)
from ragaliq.core.spending import spending
from ragaliq.core.test_case import RAGTestCase
from ragaliq.datasets import read_cases
from ragaliq.datasets.labelled_claims import LabelledClaim
from ragaliq.errors import BudgetExceeded
from ragaliq.evaluators.alignment import EvidenceSource
from ragaliq.evaluators.claims import Verifier
from ragaliq.evaluators.evaluator import Evaluator
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.calibration import level_prefix, raw_support
from ragaliq.offline.job import EvaluationJob
from ragaliq.offline.journal import EvaluationJournal
from ragaliq.offline.run import evaluate
from ragaliq.records import EvaluationRecord
from ragaliq.records.reading import is_store, records_of
from ragaliq.records.results_file import is_results_file
from ragaliq.scoring.scorer import CostCap, Scorer
from ragaliq.telemetry.emit import TelemetryOptions


class JudgedClaim(BaseModel):
    """Decision of a judge on a labelled claim; holds no text.

    Attributes:
        id: Of the labelled claim.
        group: Its group; empty for none.
        cluster: Names its context; claims over one context are not independent.
        is_supported: The label.
        label: The label as one of three verdicts, where it says that much.
        verdict: The judge's; None when it failed.
        support: Confidence of the judge that the claim is supported, 0 to 1; None when it failed.
        failure: `judge_refused`, `judge_timeout`, `judge_error` or `too_long`; None otherwise.
        error_type: The class of that error.
        error: Its message, which names the cause and the next step.
        seconds: Seconds of the decision.
        usage: Usage of the decision.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    id: str
    group: str = ""
    cluster: str
    is_supported: bool
    label: Verdict | None = None
    verdict: Verdict | None = None
    support: float | None = Field(default=None, ge=0.0, le=1.0)
    failure: str | None = None
    error_type: str | None = None
    error: str | None = None
    seconds: float = Field(ge=0.0)
    usage: JudgeUsage = JudgeUsage()

    @property
    def is_right(self) -> bool:
        """True if the judge's verdict agrees with the label; False when it failed."""
        return self.verdict is not None and (self.verdict == "SUPPORTED") == self.is_supported


# Claims of answers, without labels.


def claims_support(source: str, judge: LLMJudge, *, pipeline: str | None = None) -> list[float]:
    """The judge's support of all claims of a store, a results file, or a file of answers.

    Answers are evaluated now. Of results, claims of other judges and claims whose confidence labels
    have calibrated are skipped.

    Args:
        source: The file, or the store's address.
        judge: A judge without a calibration.
        pipeline: Only answers of this pipeline, in results.

    Raises:
        DatasetError: The source cannot be read.
    """
    own = (UNCALIBRATED, level_prefix(judge.name))
    records: Iterable[EvaluationRecord | Evaluation] = (
        records_of(source, pipeline=pipeline)
        if is_store(source) or is_results_file(source)
        else evaluate(list(read_cases(source)), metrics=("faithfulness",), judge=judge)
    )
    found: list[float] = []
    for record in records:
        results = record.results.values()
        claims = next((each.claims for each in results if each.claims), ())  # metrics share them
        decided = [claim for claim in claims if claim.verdict and claim.decided_by == judge.name]
        found += [raw_support(each) for each in decided if each.calibration.startswith(own)]
    return found


# Judging, as far as the money goes.


class _OneClaim(Evaluator):
    """Lets the judge decide the answer of a case as one claim."""

    name = "claim"

    async def measure(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        # One claim a call and no second question: this measures the judge with its calibration, not
        # a metric's handling of quotes that cannot be found.
        verifier = Verifier(
            judge, EvidenceSource(test_case.context_texts), policy=self.policy, batched=False
        )
        with spending() as spent:
            verdict = (await verifier.decide({0: test_case.response}))[0]
        return self.result(
            judge,
            score=raw_support(verdict),
            reasoning=verdict.reason,
            usage=spent.usage,
            claims=(ClaimDetail(claim=test_case.response, verdict=verdict.verdict),),
        )


async def judge_claims(
    claims: Iterable[LabelledClaim],
    judge: LLMJudge,
    *,
    concurrency: int = 8,
    deadline: float = 120.0,
    cap: CostCap | None = None,
) -> AsyncGenerator[JudgedClaim, None]:
    """Ask about the claims, one per call, and yield each as soon as it is decided.

    A context that is too long for the judge is judged in parts, as in an evaluation. A failure is
    yielded as one, without a verdict.

    Args:
        claims: Read as they are needed.
        judge: Who decides; stays open.
        concurrency: Claims asked about at the same time. A judge without a model computes: side by
            side its claims would only seem slower, so they go one after the other.
        deadline: Seconds a claim may take.
        cap: What all of it may cost, and what was spent before.

    Raises:
        BudgetExceeded: The cap is reached; what was yielded is paid for.
        ConfigurationError: There is a cap, and the judge's price is not known.
    """
    job = claims_job(claims, judge, concurrency=concurrency, deadline=deadline, cap=cap)
    async with aclosing(aiter(job)) as evaluations:
        async for evaluation in evaluations:
            yield judged_claim(evaluation.case.metadata["labelled"], evaluation)
    if job.is_cut:
        raise BudgetExceeded(f"{job.cap.reached}; rerun with a higher one to resume")


def claims_job(
    claims: Iterable[LabelledClaim],
    judge: LLMJudge,
    *,
    concurrency: int,
    deadline: float,
    cap: CostCap | None,
    journal: EvaluationJournal | None = None,
) -> EvaluationJob:
    """Job that decides the claims as `judge_claims` does; with a journal, those it does not have.

    `judged_claim` reads its evaluations, and the journal's records.
    """
    scorer = Scorer(
        judge,
        [_OneClaim()],
        deadline=deadline,
        telemetry=TelemetryOptions.silent(),
        keeps_judge=True,
    )
    cases = (
        RAGTestCase(
            id=claim.id,
            query=claim.question,
            context=list(claim.context),
            response=claim.claim,
            metadata={"labelled": claim},
        )
        for claim in claims
    )
    at_once = concurrency if judge.model else 1
    return EvaluationJob(cases, scorer, journal=journal, max_cost=cap, concurrency=at_once)


def judged_claim(claim: LabelledClaim, evaluated: Evaluation | EvaluationRecord) -> JudgedClaim:
    """Decision about a claim."""
    result = evaluated.results[_OneClaim.name]
    failure = None
    if result.score is None:
        # A user's judge may raise any error.
        failure = result.status if result.status.is_failure else Status.JUDGE_ERROR
    return JudgedClaim(
        id=claim.id,
        group=claim.group,
        cluster=claim.cluster.hex(),
        is_supported=claim.is_supported,
        label=claim.verdict,
        verdict=result.claims[0].verdict if result.claims else None,
        support=result.score,
        failure=failure,
        error_type=result.error_type,
        error=result.error,
        seconds=result.duration or 0.0,
        usage=result.usage,
    )
