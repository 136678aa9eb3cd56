"""`EntailmentJudge`: a model of the user's that says whether a claim follows from a text."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ragaliq.core.results import JudgeUsage, Verdict
from ragaliq.errors import ConfigurationError, JudgeAPIError, JudgeError, JudgeResponseError
from ragaliq.judges.base import (
    BatchingJudge,
    ClaimsResult,
    ClaimVerdict,
    JudgeResult,
    VerdictsResult,
    digest_of,
)
from ragaliq.judges.entailment.models import (
    FunctionScorer,
    OnnxScorer,
    Pair,
    PairScorer,
    Support,
    TransformersScorer,
)
from ragaliq.judges.language.sentences import split_sentences
from ragaliq.judges.local import LocalJudge

__all__ = ["EntailmentJudge", "windows_of"]


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
            ClaimVerdict(index=index, **decision._asdict(), usage=_FREE)
            for index, decision in enumerate(decisions)
            if decision is not None
        ]
        return VerdictsResult(verdicts=verdicts, usage=_FREE)

    async def grade_statements(
        self, query: str, response: str, context: Sequence[str]
    ) -> VerdictsResult:
        """Find the answer's claims and decide them."""
        claims = (await self.extract_statements(query, response)).claims
        decisions = await self._decide(claims, context)
        if None in decisions:
            raise _too_long(decisions.count(None), len(claims))
        statements = [
            ClaimVerdict(index=index, statement=claim, **decision._asdict(), usage=_FREE)
            for index, (claim, decision) in enumerate(zip(claims, decisions, strict=True))
            if decision is not None
        ]
        return VerdictsResult(verdicts=statements, usage=_FREE)

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
        return OnnxScorer(Path(model), **settings)
    return TransformersScorer(model, **settings)


def _too_long(claims: int, total: int) -> JudgeResponseError:
    return JudgeResponseError(
        f"{claims} of {total} claims are longer than half of what the model reads at once"
    )


# A context in windows that fit into the model, so that nothing is cut off silently.

CountTokens = Callable[[str], int]


class Window(NamedTuple):
    """Text that is read at once.

    Attributes:
        text: What the model sees.
        chunks: 0-based positions of the chunks it is from, in order.
    """

    text: str
    chunks: tuple[int, ...]


def windows_of(chunks: Sequence[str], count: CountTokens, *, budget: int) -> list[Window]:
    """Fill windows with consecutive sentences; a sentence that is too long is cut at a space.

    The last sentence of a window that more of the same chunk follows is repeated in the next one,
    since what is said there often goes on.

    Args:
        chunks: The texts.
        count: How many tokens a text has.
        budget: Tokens a window may have.
    """
    windows: list[Window] = []
    held: list[tuple[int, str, int]] = []
    size = 0
    for piece in _pieces(chunks, count, budget):
        if held and size + piece[2] > budget:
            windows.append(_window(held))
            last = held[-1]
            fits = last[0] == piece[0] and len(held) > 1 and last[2] + piece[2] <= budget
            held = [last] if fits else []
            size = sum(tokens for _, _, tokens in held)
        held.append(piece)
        size += piece[2]
    if held:
        windows.append(_window(held))
    return windows


def _pieces(
    chunks: Sequence[str], count: CountTokens, budget: int
) -> Iterator[tuple[int, str, int]]:
    for position, chunk in enumerate(chunks):
        for start, end in split_sentences(chunk):
            for part in _fitting(chunk[start:end], count, budget):
                # One more, since two sentences together may have a token more than apart.
                yield position, part, count(part) + 1


def _fitting(text: str, count: CountTokens, budget: int) -> Iterator[str]:
    """The text in parts of at most `budget` tokens, halved until they fit."""
    if count(text) < budget or len(text) < 2:
        yield text
        return
    middle = text.rfind(" ", 1, len(text) // 2 + 1)
    cut = middle if middle > 0 else len(text) // 2
    for part in (text[:cut], text[cut:]):
        if part.strip():
            yield from _fitting(part.strip(), count, budget)


def _window(held: Sequence[tuple[int, str, int]]) -> Window:
    return Window(
        " ".join(text for _, text, _ in held), tuple(dict.fromkeys(chunk for chunk, _, _ in held))
    )


# From the model's chances to verdicts: the best window, and the best chunk in it.

_DIGITS = 4
_EVEN = 0.5
_UNLIMITED = 1 << 30
_LEAST_WINDOW = 8  # tokens; with less room nothing could be read


class Decision(NamedTuple):
    """What was decided about one claim; the fields are those of `ClaimVerdict`."""

    verdict: Verdict
    confidence: float
    reason: str
    supporting_chunk_ids: Sequence[int] = ()


def decide_all(
    scorer: PairScorer, claims: Sequence[str], chunks: Sequence[str], *, threshold: float
) -> list[Decision | None]:
    """Decide claims; None for one that leaves the model too little room for the context."""
    if not any(chunk.strip() for chunk in chunks):
        empty = Decision("NOT_ENOUGH_INFO", 1.0, "The context is empty.")
        return [empty] * len(claims)
    sizes = [scorer.count(claim) for claim in claims]
    readable = [i for i, size in enumerate(sizes) if _has_room(scorer, size)]
    if not readable:
        return [None] * len(claims)
    reader = _Reader(scorer, chunks, _budget(scorer, max(sizes[i] for i in readable)), threshold)
    decided = dict(zip(readable, reader.decide([claims[i] for i in readable]), strict=True))
    return [decided.get(i) for i in range(len(claims))]


def _has_room(scorer: PairScorer, size: int) -> bool:
    # More than half for the claim, and the windows would be scraps.
    limit = scorer.max_tokens
    return limit is None or size <= (limit - scorer.own_tokens - _LEAST_WINDOW) // 2


def _budget(scorer: PairScorer, longest: int) -> int:
    if scorer.max_tokens is None:
        return _UNLIMITED
    return scorer.max_tokens - scorer.own_tokens - longest


class _Reader:
    def __init__(
        self, scorer: PairScorer, chunks: Sequence[str], budget: int, threshold: float
    ) -> None:
        self._scorer, self._chunks = scorer, chunks
        self._budget, self._threshold = budget, threshold
        self._windows = windows_of(chunks, scorer.count, budget=budget)

    def decide(self, claims: Sequence[str]) -> list[Decision]:
        """Decide claims for which there is room."""
        size = len(self._windows)
        pairs = [(window.text, claim) for claim in claims for window in self._windows]
        scores = self._scorer.score(pairs)
        return [
            self._decide(claim, scores[i * size : (i + 1) * size]) for i, claim in enumerate(claims)
        ]

    def _decide(self, claim: str, scores: Sequence[Support]) -> Decision:
        best = max(range(len(scores)), key=lambda i: scores[i].supported)
        against = max(range(len(scores)), key=lambda i: scores[i].contradicted)
        support = round(scores[best].supported, _DIGITS)
        contradiction = round(scores[against].contradicted, _DIGITS)
        doubt = round(1.0 - support, _DIGITS)
        if support >= self._threshold:
            reason = f"Entailed with a chance of {support:.0%}."
            chunk = self._clearest_chunk(claim, self._windows[best], "supported")
            return Decision("SUPPORTED", support, reason, [chunk])
        if contradiction > max(support, _EVEN):
            reason = f"Contradicted with a chance of {contradiction:.0%}."
            chunk = self._clearest_chunk(claim, self._windows[against], "contradicted")
            return Decision("CONTRADICTED", doubt, reason, [chunk])
        return Decision(
            "NOT_ENOUGH_INFO", doubt, f"Entailed with a chance of {support:.0%} at most."
        )

    def _clearest_chunk(self, claim: str, window: Window, field: str) -> int:
        """The chunk of a window that says it most clearly by itself."""
        if len(window.chunks) == 1:
            return window.chunks[0]
        parts = [
            (part.text, position)
            for position in window.chunks
            for part in windows_of(
                [self._chunks[position]], self._scorer.count, budget=self._budget
            )
        ]
        scores = self._scorer.score([(text, claim) for text, _ in parts])
        clearest = max(range(len(parts)), key=lambda i: float(getattr(scores[i], field)))
        return parts[clearest][1]
