"""The judge interface.

`LLMJudge` has the three methods that metrics may call on any judge. A judge that can do more in one
call is a `BatchingJudge`; metrics check the type, never attributes, so that a test double made with
`MagicMock(spec=LLMJudge)` works everywhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ragaliq.core.results import UNCALIBRATED, JudgeUsage, Verdict
from ragaliq.errors import ConfigurationError, JudgeError, JudgeResponseError

_VERDICTS = ("SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO")


class _Reply(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    usage: JudgeUsage | None = None
    tokens_used: int = Field(
        default_factory=lambda given: usage.total_tokens if (usage := given.get("usage")) else 0
    )

    def spent(self) -> JudgeUsage:
        """Usage of the reply; one with only a total counts as one request."""
        if self.usage is not None:
            return self.usage
        return JudgeUsage(unsplit_tokens=self.tokens_used, requests=1, cost_usd=None)


class ClaimsResult(_Reply):
    """The claims an answer makes, in the answer's order.

    Attributes:
        claims: The claims.
        declined: Whether the answer only says that it does not know, as far as the judge can tell.
    """

    claims: list[str]
    declined: bool = False


class ClaimVerdict(_Reply):
    """Verdict of a judge on one claim.

    Attributes:
        verdict: `SUPPORTED`, `CONTRADICTED` or `NOT_ENOUGH_INFO`; lower case is accepted.
        evidence: A quote from the context, if there is one.
        confidence: The judge's certainty, 0 to 1.
        supporting_chunk_ids: 0-based positions in the context the claim was checked against.
        reason: The judge's reason.
        decided_by: The judge that decided, if several take part; else empty.
        calibration: Id of the calibration that makes the confidence a probability; `uncalibrated`
            without one.
        index: 0-based position of the claim among those in the request or found; None for a request
            of one claim, or a reply that names an unknown one.
        statement: The claim itself, understandable without the answer, if the judge found it.

    Raises:
        JudgeResponseError: On any other verdict.
    """

    verdict: Verdict
    evidence: str = ""
    confidence: float = Field(default=1.0, ge=0.0, le=1.0)
    supporting_chunk_ids: list[int] = Field(default_factory=list)
    reason: str = ""
    decided_by: str = ""
    calibration: str = UNCALIBRATED
    index: int | None = None
    statement: str = ""

    @field_validator("verdict", mode="before")
    @classmethod
    def _normalise(cls, value: Any) -> Any:
        verdict = value.strip().upper().replace(" ", "_") if isinstance(value, str) else value
        if verdict not in _VERDICTS:
            # The value is the judge's text and may quote the answer: report only its size.
            size = f"{len(value)} characters" if isinstance(value, str) else type(value).__name__
            raise JudgeResponseError(
                f"the judge gave an unknown verdict ({size}), not one of {', '.join(_VERDICTS)}"
            )
        return verdict


class VerdictsResult(_Reply):
    """Verdicts on several claims, from the request or found by the judge, as in the reply.

    Of claims that were asked about some verdicts may be missing, and some may be there twice.

    Attributes:
        verdicts: The verdicts.
        declined: Whether the answer, where the judge saw it, only says that it does not know.
    """

    verdicts: list[ClaimVerdict]
    declined: bool = False

    def by_claim(self, claims: int) -> dict[int, ClaimVerdict]:
        """Verdicts by the position of their claim; verdicts on other claims are ignored.

        A claim with two different verdicts has none: taking either would be a guess.
        """
        found: dict[int, ClaimVerdict] = {}
        disputed: set[int] = set()
        for verdict in self.verdicts:
            position = verdict.index
            if position is None or not 0 <= position < claims:
                continue
            if found.setdefault(position, verdict).verdict != verdict.verdict:
                disputed.add(position)
        return {at: verdict for at, verdict in found.items() if at not in disputed}


class JudgeResult(_Reply):
    """A holistic score.

    Attributes:
        score: 0 to 1.
        reasoning: The judge's reason.
    """

    score: float = Field(ge=0.0, le=1.0, allow_inf_nan=False)
    reasoning: str = ""


class LLMJudge(ABC):
    """Base of every judge. Implement the three abstract methods in your own class.

    Attributes:
        name: Shown in results and telemetry.
        model: The model behind the judge; None without one.
        max_context_chars: Most characters of context in one request; a longer context is split.
            None for no limit.
        max_answer_chars: Most characters of answer in one request for claims; a longer answer is
            split. None for no limit.
        calibration: Id of the calibration that makes the judge's confidence a probability;
            `uncalibrated` without one.
        kind: Kind of judge: `llm`, `nli` (an entailment model) or `code`.
        sure_from: Confidence, 0 to 1, from which on the judge's verdicts are seldom wrong; a claim
            below is worth a second look (`ClaimDetail.is_unsure`).
        min_support: Support from which on a claim counts as supported, where unlabelled claims can
            move it; None for other judges.
        default_metrics: Metrics used with this judge by default.
        costs_money: Whether its replies cost money.
    """

    name: str = "judge"
    model: str | None = None
    calibration: str = UNCALIBRATED
    kind: str = "llm"
    sure_from: float = 0.8
    min_support: float | None = None
    default_metrics: tuple[str, ...] = ("faithfulness", "relevance")
    costs_money: bool = False
    max_context_chars: int | None = None
    max_answer_chars: int | None = None

    @abstractmethod
    async def extract_claims(self, response: str) -> ClaimsResult:
        """List the checkable claims an answer makes."""

    @abstractmethod
    async def verify_claim(self, claim: str, context: list[str]) -> ClaimVerdict:
        """Decide one claim from the context alone; an empty context gives NOT_ENOUGH_INFO."""

    @abstractmethod
    async def evaluate_relevance(self, query: str, response: str) -> JudgeResult:
        """Score how well the answer addresses the question, 0 to 1."""

    async def evaluate_faithfulness(self, response: str, context: list[str]) -> JudgeResult:
        """Share of the answer's claims that the context supports; 1.0 if it makes none.

        Raises:
            JudgeError: The judge failed; what was spent before is in its `usage`.
        """
        found = await self.extract_claims(response)
        verdicts, usage = list[ClaimVerdict](), found.spent()
        for claim in found.claims:
            with spent_before(usage):
                verdicts.append(await self.verify_claim(claim, context))
            usage += verdicts[-1].spent()
        return _share_supported(verdicts, usage)

    async def evaluate_context_relevance(self, query: str, chunk: str) -> JudgeResult:
        """Score how well one chunk addresses the question; by default like an answer."""
        return await self.evaluate_relevance(query, chunk)

    def is_unsure(self, verdict: ClaimVerdict) -> bool:
        """Check whether a verdict is worth a second look."""
        return verdict.confidence < self.sure_from

    def fingerprint(self) -> str:
        """Fingerprint that changes with the judge's parameters, prompts or model."""
        return digest_of(type(self).__qualname__, self.name, self.model or "")

    @property
    def is_unpriced(self) -> bool:
        """True if it is known before any request that no reply will have a price."""
        return False

    @property
    def plan(self) -> dict[str, Any] | None:
        """Judge as plain data, from which another process makes the same; None if impossible."""
        return None

    def estimate(self) -> LLMJudge:
        """Return a judge that sends nothing, asks as this one does and reports estimated usage.

        Raises:
            ConfigurationError: The judge's cost cannot be estimated.
        """
        raise ConfigurationError(
            f"what {type(self).__name__} costs cannot be estimated; it can for 'local', 'claude', "
            "judges derived from PromptedJudge, and cascades of these"
        )

    def answered_by(self, send: Callable[..., Any]) -> LLMJudge:  # noqa: ARG002
        """Return a copy of the judge that gets its replies from `send`; see `PromptedJudge`.

        Raises:
            ConfigurationError: The judge makes no requests of its own.
        """
        raise ConfigurationError(
            f"{self.name} makes no requests that are known beforehand; use 'claude' or 'openai'"
        )

    def unload(self) -> None:  # noqa: B027 - a judge without a model has nothing to free
        """Free the memory of a model that another process now holds."""

    async def aclose(self) -> None:  # noqa: B027 - a judge without connections need not care
        """Release resources of the running event loop, such as connections."""


class BatchingJudge(LLMJudge):
    """A judge that handles all claims of an answer in one call.

    Attributes:
        max_claims: Most claims of one call; more are split over several. None for no limit.
    """

    max_claims: int | None = None
    _undecided = ""
    """Why a claim may have no verdict, for the error that says so."""

    async def extract_claims(self, response: str) -> ClaimsResult:
        """List the claims of an answer without its question."""
        return await self.extract_statements("", response)

    async def verify_claim(self, claim: str, context: list[str]) -> ClaimVerdict:
        """Decide one claim.

        Raises:
            JudgeError: The judge failed, or gave no verdict.
        """
        reply = await self.verify_claims([claim], context)
        verdict = self._all_decided(reply, [claim])[0]
        usage = reply.spent()
        alone = {"index": None, "usage": usage, "tokens_used": usage.total_tokens}
        return verdict.model_copy(update=alone)

    @abstractmethod
    async def extract_statements(self, query: str, response: str) -> ClaimsResult:
        """List the answer's claims, with pronouns resolved from question and answer."""

    @abstractmethod
    async def verify_claims(self, claims: Sequence[str], context: Sequence[str]) -> VerdictsResult:
        """Decide all claims in one call; verdicts carry the position of their claim."""

    async def evaluate_faithfulness(self, response: str, context: list[str]) -> JudgeResult:
        """Share of the answer's claims that the context supports, in two calls instead of 1 + N.

        Raises:
            JudgeError: The judge failed, or left a claim without a verdict.
        """
        graded = await BatchingJudge.grade_statements(self, "", response, context)
        return _share_supported(graded.verdicts, graded.spent())

    async def grade_statements(
        self, query: str, response: str, context: Sequence[str]
    ) -> VerdictsResult:
        """Find and decide the answer's statements; in two calls unless the judge can use one.

        Raises:
            JudgeError: The judge failed, or left a claim without a verdict.
        """
        found = await self.extract_statements(query, response)
        with spent_before(found.spent()):
            reply = await self.verify_claims(found.claims, context)
        return self._graded(found, reply)

    def _graded(self, found: ClaimsResult, reply: VerdictsResult) -> VerdictsResult:
        """Pair the claims with their verdicts; raises as `grade_statements`."""
        with spent_before(found.spent()):
            verdicts = self._all_decided(reply, found.claims)
        statements = [
            verdict.model_copy(update={"statement": claim})
            for verdict, claim in zip(verdicts, found.claims, strict=True)
        ]
        usage = found.spent() + reply.spent()
        return VerdictsResult(verdicts=statements, declined=found.declined, usage=usage)

    def _all_decided(self, reply: VerdictsResult, claims: Sequence[str]) -> list[ClaimVerdict]:
        """Verdicts in the order of the claims; raises JudgeResponseError if one is missing."""
        decided = reply.by_claim(len(claims))
        if missing := len(claims) - len(decided):
            raise JudgeResponseError(
                f"{self.name} gave no verdict for {missing} of {len(claims)} claims"
                f"{self._undecided}",
                usage=reply.spent(),
            )
        return [decided[position] for position in range(len(claims))]


@contextmanager
def spent_before(usage: JudgeUsage) -> Iterator[None]:
    """Add earlier usage to the usage of a judge's error raised inside."""
    try:
        yield
    except JudgeError as error:
        error.usage = usage + (error.usage or JudgeUsage())
        raise


def _share_supported(verdicts: Sequence[ClaimVerdict], usage: JudgeUsage) -> JudgeResult:
    supported, total = sum(v.verdict == "SUPPORTED" for v in verdicts), len(verdicts)
    return JudgeResult(
        score=supported / total if total else 1.0,
        reasoning=f"{supported} of {total} claims are supported by the context.",
        usage=usage,
    )


def limit_of(limit: object) -> int | None:
    """Limit of a judge; None without one."""
    # A MagicMock(spec=LLMJudge) answers any attribute with another mock.
    return limit if isinstance(limit, int) and limit > 0 else None


def digest_of(*parts: str | bytes) -> str:
    """Hash the parts, in order, into sixteen hex digits."""
    digest = blake2b(digest_size=8, person=b"ragaliq-judge")
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        # The lengths make ("ab", "c") and ("a", "bc") different.
        digest.update(len(encoded).to_bytes(8) + encoded)
    return digest.hexdigest()


def long_digest_of(text: str) -> str:
    """Hash a text into forty hex digits, long enough to avoid collisions of requests."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


class JudgeIdentity(NamedTuple):
    """Identity of a judge, as results record it.

    Attributes:
        name: Its name; its class if it has none.
        model: Its model, if it has one.
        calibration: Id of the calibration behind its confidence; `uncalibrated` without one.
        kind: `llm`, `nli` or `code`; empty if unknown.
    """

    name: str
    model: str | None
    calibration: str
    kind: str


def identity_of(judge: LLMJudge) -> JudgeIdentity:
    """Name, model, calibration and kind of a judge."""
    # A MagicMock(spec=LLMJudge) answers any attribute with another mock.
    name, model, calibration, kind = (
        value if isinstance(value := getattr(judge, attribute, None), str) else None
        for attribute in ("name", "model", "calibration", "kind")
    )
    name = name or type(judge).__name__
    return JudgeIdentity(name, model, calibration or UNCALIBRATED, kind or "")
