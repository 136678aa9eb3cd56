"""`EntailmentJudge`: a model of the user's that says whether a claim follows from a text."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import ConfigurationError, JudgeAPIError, JudgeError, JudgeResponseError
from ragaliq.judges.base import (
    BatchingJudge,
    ClaimsResult,
    ClaimVerdict,
    GradedStatements,
    JudgeResult,
    NumberedVerdict,
    StatementVerdict,
    VerdictsResult,
)
from ragaliq.judges.digest import digest_of
from ragaliq.judges.entailment.deciding import Decision, decide_all
from ragaliq.judges.entailment.scoring import FunctionScorer, Pair, PairScorer
from ragaliq.judges.local import LocalJudge

__all__ = ["EntailmentJudge"]

_FREE = JudgeUsage()


class EntailmentJudge(BatchingJudge):
    """Decides by an entailment model that runs in this process.

    A claim is supported as far as the window of the context that supports it most does. Its
    confidence is the model's own chance, no probability until a `CalibratedJudge` makes it one.

    Claims are found as the embedded judge finds them, and relevance is scored as it scores it: an
    entailment model says nothing about a question.

    Needs `pip install 'ragaliq[entailment]'`, or `ragaliq[entailment-onnx]` for ONNX files only.

    Args:
        model: A folder with a Hugging Face sequence-classification model, its name on the hub, an
            `.onnx` file, or a function from (context, claim) pairs to chances of support.
        labels: A verdict for each of the model's outputs, in order; by default as its
            configuration names them, and refused where that says nothing.
        device: Such as `cpu` or `cuda`; by default the best one there is.
        batch_size: Pairs scored at once.
        max_tokens: Tokens of a window and a claim together; by default what the model takes.
        threshold: Chance of support from which on a claim is supported, 0 to 1.

    Raises:
        ConfigurationError: The extra is missing, or the model cannot be used.
    """

    name = "entailment"

    def __init__(
        self,
        model: str | Path | Callable[[list[Pair]], Sequence[float]],
        *,
        labels: Sequence[str] | None = None,
        device: str | None = None,
        batch_size: int = 16,
        max_tokens: int | None = None,
        threshold: float = 0.5,
    ) -> None:
        if batch_size < 1 or (max_tokens is not None and max_tokens < 1):
            raise ConfigurationError("EntailmentJudge: batch_size and max_tokens must be positive")
        if not 0.0 < threshold < 1.0:
            raise ConfigurationError(
                f"EntailmentJudge: threshold must be between 0 and 1, got {threshold!r}"
            )
        self._scorer = _scorer(
            model, labels=labels, device=device, batch_size=batch_size, max_tokens=max_tokens
        )
        self.model = self._scorer.name
        self.threshold = threshold
        self._wording = LocalJudge()
        self._lock = threading.Lock()

    def fingerprint(self) -> str:
        """Changes with the model's parameters, the meaning of its outputs and the threshold."""
        return digest_of(
            self.name, self.model or "", self._scorer.fingerprint(), f"{self.threshold}"
        )

    async def extract_claims(self, response: str) -> ClaimsResult:
        """List the sentences, list items and table rows of an answer that can be checked."""
        return await self._wording.extract_claims(response)

    async def extract_statements(self, query: str, response: str) -> ClaimsResult:
        """The same: pronouns stay as they are."""
        return await self._wording.extract_statements(query, response)

    async def verify_claim(self, claim: str, context: list[str]) -> ClaimVerdict:
        """Decide one claim."""
        (decision,) = await self._decide([claim], context)
        if decision is None:
            raise _too_long(1, 1)
        return ClaimVerdict(**decision._asdict(), usage=_FREE)

    async def verify_claims(self, claims: Sequence[str], context: Sequence[str]) -> VerdictsResult:
        """Decide all claims; one that is too long for the model has no verdict."""
        decisions = await self._decide(claims, context)
        verdicts = [
            NumberedVerdict(claim_index=index, **decision._asdict(), usage=_FREE)
            for index, decision in enumerate(decisions)
            if decision is not None
        ]
        return VerdictsResult(verdicts=verdicts, usage=_FREE)

    async def grade_statements(
        self, query: str, response: str, context: Sequence[str]
    ) -> GradedStatements:
        """Find the answer's claims and decide them."""
        claims = (await self.extract_statements(query, response)).claims
        decisions = await self._decide(claims, context)
        if None in decisions:
            raise _too_long(decisions.count(None), len(claims))
        statements = [
            StatementVerdict(index=index, statement=claim, **decision._asdict(), usage=_FREE)
            for index, (claim, decision) in enumerate(zip(claims, decisions, strict=True))
            if decision is not None
        ]
        return GradedStatements(statements=statements, usage=_FREE)

    async def evaluate_relevance(self, query: str, response: str) -> JudgeResult:
        """Score by wording how well the answer addresses the question."""
        return await self._wording.evaluate_relevance(query, response)

    async def evaluate_context_relevance(self, query: str, chunk: str) -> JudgeResult:
        """Score by wording how well one chunk addresses the question."""
        return await self._wording.evaluate_context_relevance(query, chunk)

    async def _decide(self, claims: Sequence[str], context: Sequence[str]) -> list[Decision | None]:
        # Off the event loop: a batch takes a second on a CPU, in which nothing else would run.
        return await asyncio.to_thread(self._decide_now, list(claims), list(context))

    def _decide_now(self, claims: list[str], context: list[str]) -> list[Decision | None]:
        try:
            with self._lock:  # tokenizers and sessions are not made for two threads at once
                return decide_all(self._scorer, claims, context, threshold=self.threshold)
        except JudgeError:
            raise
        except Exception as error:  # noqa: BLE001 - a model may fail in any way; texts stay unsaid
            raise JudgeAPIError(
                f"the model {self.model} failed with {type(error).__name__}; try a smaller "
                "batch_size, or another device"
            ) from None


def _scorer(model: Any, **settings: Any) -> PairScorer:
    if callable(model) and not isinstance(model, (str, Path)):
        if settings["labels"] is not None or settings["device"] is not None:
            raise ConfigurationError(
                "EntailmentJudge: labels and device are for models, not for a function"
            )
        return FunctionScorer(model, max_tokens=settings["max_tokens"])
    if not isinstance(model, (str, Path)) or not str(model).strip():
        raise ConfigurationError(
            "EntailmentJudge takes a folder, a name on the hub, an .onnx file or a function, got "
            f"{type(model).__name__}"
        )
    if str(model).lower().endswith(".onnx"):
        if not Path(model).is_file():
            raise ConfigurationError(f"there is no file {model}")
        from ragaliq.judges.entailment.onnx_model import OnnxScorer

        return OnnxScorer(Path(model), **settings)
    from ragaliq.judges.entailment.transformers_model import TransformersScorer

    return TransformersScorer(model, **settings)


def _too_long(claims: int, total: int) -> JudgeResponseError:
    return JudgeResponseError(
        f"{claims} of {total} claims are longer than half of what the model reads at once"
    )
