"""Let a judge decide labelled claims, and keep paid decisions in a journal."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from functools import partial
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragaliq.core.files import file_errors, owner_only
from ragaliq.core.results import (
    UNCALIBRATED,
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
from ragaliq.errors import BudgetExceeded, DatasetError
from ragaliq.evaluators.alignment import EvidenceSource
from ragaliq.evaluators.claims import Verifier
from ragaliq.evaluators.evaluator import Evaluator
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.calibration import level_prefix, raw_support
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
            raw_response={"verdict": verdict.verdict},
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
    scorer = Scorer(judge, [_OneClaim()], deadline=deadline, telemetry=TelemetryOptions.silent())
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
    try:
        async with aclosing(scorer.stream(cases, concurrency=at_once, cap=cap)) as stream:
            async for evaluation in stream:
                yield _judged(
                    evaluation.case.metadata["labelled"], evaluation.results[_OneClaim.name]
                )
    except BudgetExceeded as error:
        raise BudgetExceeded(f"{error}; rerun with a higher one to resume") from None


def _judged(claim: LabelledClaim, result: EvaluationResult) -> JudgedClaim:
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
        verdict=result.raw_response.get("verdict"),
        support=result.score,
        failure=failure,
        error_type=result.error_type,
        error=result.error,
        seconds=result.duration or 0.0,
        usage=result.usage,
    )


# The journal: nothing that was paid for is asked twice.

_HEADER = "ragaliq_judged_claims"
_VERSION = 1


def journal_settings(data: Path, judge: LLMJudge) -> dict[str, str | None]:
    """Everything that decisions depend on: the data, the judge, its parameters and calibration."""
    with data.open("rb") as file:
        digest = file_digest(file, partial(blake2b, digest_size=16))
    return {
        "data": digest.hexdigest(),
        "judge": judge.name,
        "model": judge.model,
        "fingerprint": judge.fingerprint(),
        "calibration": judge.calibration,
    }


class Journal:
    """File of decisions, created or continued; a context manager.

    Attributes:
        judged: Decisions by claim id, without failures, which are asked again.
        usage: Usage of everything in the file, failures included.

    Raises:
        DatasetError: The file is not a journal, is about other data or another judge, or cannot be
            written.
    """

    def __init__(self, path: str | Path, settings: Mapping[str, str | None]) -> None:
        self.path = Path(path)
        self.judged: dict[str, JudgedClaim] = {}
        self.usage = JudgeUsage()
        header = {_HEADER: _VERSION, **settings}
        with file_errors(self.path):
            held = self.path.read_bytes() if self.path.exists() else b""
            whole = held[: held.rfind(b"\n") + 1]
            if held:
                # Only a journal is written to, and loses a line that was cut short.
                self._read(whole.splitlines(), header)
            # Bytes and no buffer: a line is in the file as soon as it is written.
            self._file = open(self.path, "ab", buffering=0, opener=owner_only)  # noqa: SIM115
            self._file.truncate(len(whole))
            if not held:
                self._file.write(json.dumps(header).encode() + b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, judged: JudgedClaim) -> None:
        """Add a decision; once this returns, a crash does not lose it."""
        with file_errors(self.path):
            self._file.write(judged.model_dump_json().encode() + b"\n")

    def _read(self, lines: list[bytes], wanted: Mapping[str, object]) -> None:
        try:
            found = json.loads(lines[0])
            is_journal = found[_HEADER] == _VERSION
        except (ValueError, TypeError, LookupError, RecursionError):
            is_journal = False
        if not is_journal:
            raise DatasetError(f"{self.path} is not a journal of judged claims; name another file")
        changed = [name for name in wanted if found.get(name) != wanted[name]]
        if changed:
            raise DatasetError(
                f"{self.path} is about something else ({', '.join(changed)} changed since); name "
                "another file"
            )
        for number, line in enumerate(lines[1:], start=2):
            try:
                judged = JudgedClaim.model_validate_json(line)
            except ValidationError:
                raise DatasetError(f"{self.path}, line {number} is not a judged claim") from None
            self.usage += judged.usage
            if judged.failure is None:
                self.judged[judged.id] = judged
