"""What a guard found out about one answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ragaliq.core.results import ClaimDetail, Evaluation, EvaluationResult, Status

__all__ = ["Decision", "GuardResult"]

Decision = Literal["passed", "rejected", "unscored", "failed", "timeout", "off"]
"""`unscored`: there was nothing to score, such as an answer without claims. `failed`: the judge or
the monitor failed, which says nothing about the answer. `off`: the monitor is disabled, or the call
is inside `suppress()`."""


@dataclass(frozen=True, kw_only=True)
class GuardResult:
    """What a guard found out about one answer; holds the application's text.

    Attributes:
        decision: See `Decision`.
        reason: One sentence without any of the application's text.
        live: The evaluation, if there was one.
        below: The metrics that did not reach their threshold.
    """

    decision: Decision
    reason: str
    live: Evaluation | None = None
    below: tuple[EvaluationResult, ...] = ()

    @property
    def scores(self) -> Mapping[str, float]:
        """The measured scores by metric."""
        results = {} if self.live is None else self.live.results
        return {name: r.score for name, r in results.items() if r.score is not None}

    @property
    def failed_claims(self) -> tuple[ClaimDetail, ...]:
        """The claims that the context contradicts or does not cover, each once."""
        found = {
            claim.claim: claim
            for result in self.below
            for claim in result.claims
            if claim.verdict in {"CONTRADICTED", "NOT_ENOUGH_INFO"}
        }
        return tuple(found.values())

    @property
    def summary(self) -> dict[str, Any]:
        """Plain data without any text, to put next to an answer."""
        return {
            "decision": self.decision,
            "reason": self.reason,
            "scores": dict(self.scores),
            "below": [result.evaluator_name for result in self.below],
            "failed_claims": len(self.failed_claims),
        }

    @property
    def feedback(self) -> str:
        """What to tell the model that gave the answer, so that it can do better.

        It names the claims that failed, and is for the application's own model only.
        """
        lines = ["Your last answer was not accepted."]
        if claims := self.failed_claims:
            lines.append("The sources do not support these statements:")
            lines += [f"- {claim.claim}{_contradicted(claim)}" for claim in claims]
        if any(not result.claims for result in self.below):
            lines.append("It does not answer the question.")
        lines.append(
            "Answer the question again. Say only what the sources say; where they do not answer "
            "it, say that you do not know."
        )
        return "\n".join(lines)

    @classmethod
    def of(
        cls, live: Evaluation, counting: Sequence[EvaluationResult], *, pass_no_context: bool
    ) -> GuardResult:
        """Decide on an evaluation.

        A measured failure counts whatever became of the other metrics; a judge's failure is
        neither good nor bad.

        Args:
            live: The evaluation.
            counting: The results that count, by the guard's thresholds.
            pass_no_context: Whether an answer that nothing was retrieved for is left alone.
        """
        below = tuple(result for result in counting if _is_below(result))
        if below:
            reason = "; ".join(map(_below, below))
            return cls(decision="rejected", reason=reason, live=live, below=below)
        if not pass_no_context and any(r.status is Status.NO_CONTEXT for r in counting):
            return cls(decision="rejected", reason="nothing was retrieved", live=live)
        statuses = "; ".join(f"{r.evaluator_name}: {r.status.value}" for r in counting)
        if any(result.status.is_failure for result in counting):
            return cls(decision="failed", reason=statuses, live=live)
        if not any(result.passed for result in counting):
            return cls(decision="unscored", reason=statuses, live=live)
        return cls(decision="passed", reason="every score reaches its threshold", live=live)


def _is_below(result: EvaluationResult) -> bool:
    # Some policies give a failure a score, and "undefined" counts as not passed: neither says
    # anything about the answer.
    is_scored = result.score is not None and not math.isnan(result.score)
    return is_scored and result.passed is False and not result.status.is_failure


def _below(result: EvaluationResult) -> str:
    side = "below" if result.higher_is_better else "above"
    said = f"{result.evaluator_name} {result.score:.3g} is {side} {result.threshold:g}"
    failed = sum(claim.verdict not in {"SUPPORTED", None} for claim in result.claims)
    if not result.claims:
        return said
    return f"{said} ({failed} of {len(result.claims)} claims not supported)"


def _contradicted(claim: ClaimDetail) -> str:
    return " (they say otherwise)" if claim.verdict == "CONTRADICTED" else ""
