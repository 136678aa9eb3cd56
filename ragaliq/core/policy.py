"""Scoring policies: the rules for edge cases, each with a name.

The reference systems disagree on purpose-made edge cases: an answer without claims scores 1.0 in
RagaliQ, NaN in RAGAS and 0.0 in rag_evals. A policy states each choice, so that none is made
silently inside a metric.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from ragaliq.errors import ConfigurationError


class Fallback(BaseModel):
    """The score reported where there is nothing to measure.

    Attributes:
        score: 0 to 1, NaN for "undefined", None for "no score".
        passed: Whether the case then counts as passed; None exactly when `score` is None.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    score: float | None
    passed: bool | None


OnFailure = Fallback | Literal["raise"]
"""Report a fallback, or raise the judge's error."""

UNSCORED = Fallback(score=None, passed=None)
UNDEFINED = Fallback(score=math.nan, passed=False)
ZERO = Fallback(score=0.0, passed=False)
NEUTRAL = Fallback(score=0.5, passed=False)
VACUOUS = Fallback(score=1.0, passed=True)


class Wording(BaseModel):
    """Reasons in the words of a reference system, which its users look for.

    Attributes:
        no_claims: The reason for an answer without claims.
        refusal: The reason when the judge declined.
        no_verdict: The reason when the reply held no usable verdict.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    no_claims: str
    refusal: str
    no_verdict: str

    @staticmethod
    def scored(
        metric: str, score: float, threshold: float, *, passed: bool, higher_is_better: bool = True
    ) -> str:
        """Reason for a score: the metric, the score and the side of the threshold it is on."""
        sign = (">=", "<") if higher_is_better else ("<=", ">")
        return f"{metric.capitalize()} {score:.2f} is {sign[not passed]} {threshold:g}"


class ScoringPolicy(BaseModel):
    """Rules for scoring when the judge or the case gives less than was asked for.

    Attributes:
        name: Shown in results and telemetry.
        no_claims: Score of an answer without claims.
        refusal: Score where the judge declined.
        no_verdict: Score where the judge's reply held no usable verdict.
        judge_failure: Score where the judge could not be reached, failed or took too long.
        missing_verdicts: The reply decided fewer claims than were asked. `reask` asks for the
            missing ones once; `returned` divides by the verdicts that came; `truncate` scores the
            shorter of the two lists; `error` treats it as a malformed reply.
        still_missing: After `reask`: `error`, or `partial` to score what was decided.
        empty_context: `not_enough_info` gives every claim that verdict without a call, `judge`
            asks all the same, `error` raises, `skip` reports `no_context` without a score.
        answer_refusal: Whether an answer that declines to answer is reported as `answer_refused`
            (True) or as any other answer without claims (False).
        declines: The application's own ways to decline, reported as `answer_refused`: texts, or
            regular expressions between slashes (`/no results for .*/`), of a whole answer or
            sentence.
        uses_prompt: Whether claims that no chunk supports may rest on the rest of the prompt
            (`RAGTestCase.prompt_context`).
        least_coverage: Share of what the answer asserts that its claims must cover; below it the
            status is `partial`.
        history_turns: How many messages before the question count: claims may rest on the chunks
            of earlier turns and on what the user said, and a question is judged together with what
            it refers to. 0 looks at this turn alone.
        tolerance: A score passes from `threshold - tolerance` on.
        wording: How reasons are worded; None for each metric's own words.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    no_claims: Fallback
    refusal: OnFailure
    no_verdict: OnFailure
    judge_failure: OnFailure
    missing_verdicts: Literal["reask", "returned", "truncate", "error"]
    still_missing: Literal["error", "partial"] = "error"
    empty_context: Literal["not_enough_info", "judge", "error", "skip"]
    answer_refusal: bool = False
    declines: tuple[str, ...] = ()
    uses_prompt: bool = True
    least_coverage: float = Field(default=0.0, ge=0.0, le=1.0)
    history_turns: int = Field(default=20, ge=0)
    tolerance: float = 1e-9
    wording: Wording | None = None

    def with_declines(self, declines: Iterable[str]) -> ScoringPolicy:
        """Return the same policy with more ways to decline.

        Raises:
            ConfigurationError: One is blank or not a valid regular expression.
        """
        added = (declines,) if isinstance(declines, str) else tuple(declines)
        for text in added:
            try:
                is_blank = not text.strip("/ \n")
                re.compile(text[1:-1] if text.startswith("/") and text.endswith("/") else "")
            except (re.error, AttributeError) as error:
                raise ConfigurationError(f"declines: {text!r}: {error}") from None
            if is_blank:
                raise ConfigurationError("declines: a text is blank")
        return self.model_copy(update={"declines": (*self.declines, *added)}) if added else self

    RAGALIQ: ClassVar[ScoringPolicy]
    RAGAS: ClassVar[ScoringPolicy]
    RAG_EVALS: ClassVar[ScoringPolicy]
    PROMPTFOO: ClassVar[ScoringPolicy]
    LIVE: ClassVar[ScoringPolicy]


ScoringPolicy.RAGALIQ = ScoringPolicy(
    name="ragaliq",
    no_claims=VACUOUS,
    refusal="raise",
    no_verdict="raise",
    judge_failure="raise",
    missing_verdicts="reask",
    empty_context="not_enough_info",
)
ScoringPolicy.RAGAS = ScoringPolicy(
    name="ragas",
    no_claims=UNDEFINED,
    refusal=UNDEFINED,
    no_verdict=UNDEFINED,
    judge_failure="raise",
    missing_verdicts="returned",
    empty_context="error",
    uses_prompt=False,
    history_turns=0,
)
ScoringPolicy.RAG_EVALS = ScoringPolicy(
    name="rag_evals",
    no_claims=ZERO,
    refusal="raise",
    no_verdict="raise",
    judge_failure="raise",
    missing_verdicts="error",
    empty_context="judge",
    uses_prompt=False,
    history_turns=0,
)
ScoringPolicy.PROMPTFOO = ScoringPolicy(
    name="promptfoo",
    no_claims=ZERO,
    refusal=ZERO,
    no_verdict=NEUTRAL,
    judge_failure="raise",
    missing_verdicts="truncate",
    empty_context="judge",
    uses_prompt=False,
    history_turns=0,
    wording=Wording(
        no_claims="No statements generated for faithfulness calculation",
        refusal="LLM refused to provide faithfulness verdicts",
        no_verdict="No faithfulness verdicts provided",
    ),
)
ScoringPolicy.LIVE = ScoringPolicy(
    name="live",
    no_claims=UNSCORED,
    refusal=UNSCORED,
    no_verdict=UNSCORED,
    judge_failure=UNSCORED,
    missing_verdicts="reask",
    still_missing="partial",
    empty_context="skip",
    answer_refusal=True,
    least_coverage=2 / 3,
)
