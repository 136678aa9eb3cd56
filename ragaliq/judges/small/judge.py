"""`EntailmentJudge`: a small model that decides whether a text supports a claim."""

from __future__ import annotations

import asyncio
import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from ragaliq.core.checks import require_positive
from ragaliq.core.results import JudgeUsage, Verdict
from ragaliq.errors import ConfigurationError, JudgeAPIError, JudgeError
from ragaliq.judges.base import ClaimVerdict, VerdictsResult, digest_of
from ragaliq.judges.language.sentences import split_sentences
from ragaliq.judges.local.judge import WordingJudge
from ragaliq.judges.resolve import shown_name
from ragaliq.judges.small.loading import ModelChoice
from ragaliq.judges.small.models import ClaimScorer, Support, TextPair
from ragaliq.judges.small.presets import PRESETS, Preset, other_kind


class EntailmentJudge(WordingJudge):
    """Decides by a small model: a preset, any classifier of two texts, or a function.

    The window of the context with the highest support decides a claim. The confidence is the
    model's own score, not a probability without a `CalibratedJudge`. Claims and relevance are those
    of the embedded judge, since such a model does not handle questions.

    Needs `pip install 'ragaliq[entailment]'`, or `ragaliq[entailment-onnx]` for ONNX files only; a
    function needs neither.

    Args:
        model: The name of a preset (`ragaliq.judges.small.PRESETS`), a folder with a Hugging
            Face classifier, an `.onnx` file, a repository on the hub, or a function from (context,
            claim) pairs to chances of support.
        path: Of a preset: its folder, `.onnx` file, or repository; by default the folder of its
            name in `RAGALIQ_MODELS`.
        labels: A verdict for each of the model's outputs, in order; by default from the preset or
            the model's configuration, which must name them.
        device: Such as `cpu` or `cuda`; by default the best one there is. On the CPU a folder's
            ONNX file is preferred.
        dtype: Such as `bfloat16`, for torch.
        threads: Threads of the processor the model may use; for torch this holds process-wide.
        batch_size: Pairs scored at once.
        max_tokens: Most tokens of a window and a claim together; by default the model's limit.
        threshold: Least score of a supported claim; by default the preset's, else 0.5.
        download: Fetch a repository that is not in the local cache. Nothing is fetched otherwise.

    Raises:
        ConfigurationError: The extra is missing, or the model does not fit the arguments.
    """

    name = "entailment"
    kind = "nli"
    _undecided = ", which are longer than half of what the model reads at once"

    def __init__(
        self,
        model: str | Path | Callable[[list[TextPair]], Sequence[float]],
        *,
        path: str | Path | None = None,
        labels: Sequence[str] | None = None,
        device: str | None = None,
        dtype: str | None = None,
        threads: int | None = None,
        batch_size: int = 16,
        max_tokens: int | None = None,
        threshold: float | None = None,
        download: bool = False,
    ) -> None:
        counts = {"batch_size": batch_size, "max_tokens": max_tokens, "threads": threads}
        given = {option: count for option, count in counts.items() if count is not None}
        require_positive("EntailmentJudge", **given)
        if threshold is not None and not 0.0 < threshold < 1.0:
            raise ConfigurationError(
                f"EntailmentJudge: threshold must be between 0 and 1, got {threshold!r}"
            )
        # As plain data, from which another process makes the same judge.
        self._choice = ModelChoice(
            model=str(model) if isinstance(model, Path) else model,
            path=None if path is None else str(path),
            labels=labels if labels is None or isinstance(labels, str) else list(labels),
            device=device,
            dtype=dtype,
            threads=threads,
            batch_size=batch_size,
            max_tokens=max_tokens,
            download=download,
        )
        self._held: ClaimScorer | None
        self._preset, self._held = self._choice.load()
        self.model = self._scorer.name
        self.threshold = threshold or self._preset.threshold
        self._fingerprint = ""
        # Tokenizers and sessions are not made for two threads at once.
        self._lock = threading.Lock()

    @property
    def _scorer(self) -> ClaimScorer:
        if self._held is None:
            self._preset, self._held = self._choice.load()
        return self._held

    @property
    def plan(self) -> dict[str, Any] | None:
        """Judge as plain data, from which another process makes the same one.

        None for a function and for a subclass, which cannot be serialised.
        """
        if callable(self._choice.model) or type(self) is not EntailmentJudge:
            return None
        return {"judge": {**self._choice._asdict(), "threshold": self.threshold}}

    def unload(self) -> None:
        """Free the model's memory; it is loaded again if this process needs it."""
        if self.plan is not None:
            self.fingerprint()
            self._held = None

    @classmethod
    def named(cls, spec: str, *, path: str | Path | None = None) -> Self:
        """Judge named by `entailment:NAME` or `entailment:NAME@WHERE`.

        WHERE is the folder or file of a preset. A folder may be given instead of a preset's name.

        Raises:
            ConfigurationError: There is no such preset, or it cannot be loaded.
        """
        name, _, where = spec.removeprefix("entailment:").partition("@")
        if name not in PRESETS:
            if Path(name).exists() and not where and path is None:
                return cls(name)
            kind = other_kind(name)
            found = f"{name} {kind}" if kind else f"there is no small judge {shown_name(name)}"
            raise ConfigurationError(f"{found}; use one of {', '.join(PRESETS)}, or a folder")
        return cls(name, path=where or path)

    def fingerprint(self) -> str:
        """Fingerprint of the model's parameters, its input format and the threshold."""
        if not self._fingerprint:
            self._fingerprint = digest_of(
                self.name, self.model or "", self._scorer.fingerprint(), f"{self.threshold}"
            )
        return self._fingerprint

    async def verify_claims(self, claims: Sequence[str], context: Sequence[str]) -> VerdictsResult:
        """Decide all claims; one that is too long for the model has no verdict."""
        # Off the event loop: a batch takes a second on a CPU, in which nothing else would run.
        return await asyncio.to_thread(self._decide, claims, context)

    def _decide(self, claims: Sequence[str], context: Sequence[str]) -> VerdictsResult:
        if not any(chunk.strip() for chunk in context):
            reason = "The context is empty."
            empty = [_verdict(i, "NOT_ENOUGH_INFO", 1.0, reason) for i in range(len(claims))]
            return VerdictsResult(verdicts=empty, usage=_FREE)
        try:
            with self._lock:
                return _decide_pairs(self._scorer, self._preset, claims, context, self.threshold)
        except JudgeError:
            raise
        except Exception as error:  # noqa: BLE001 - a model may fail in any way; texts stay unsaid
            raise JudgeAPIError(
                f"the model {self.model} failed with {type(error).__name__}; try a smaller "
                "batch_size, or another device"
            ) from None


_FREE = JudgeUsage()


def _verdict(index: int, verdict: Verdict, confidence: float, reason: str) -> ClaimVerdict:
    return ClaimVerdict(
        index=index,
        verdict=verdict,
        confidence=confidence,
        reason=reason,
        usage=_FREE,
    )


# A context in windows that fit into the model, so that nothing is cut off silently.


class ContextWindow(NamedTuple):
    """Text that is read at once, and the 0-based positions of the chunks it is from, in order."""

    text: str
    chunks: tuple[int, ...]


def windows_of(
    chunks: Sequence[str], count: Callable[[str], int], *, budget: int, joiner: str = " "
) -> list[ContextWindow]:
    """Fill windows with consecutive sentences; a sentence that is too long is cut at a space.

    The last sentence of a window that more of the same chunk follows is repeated in the next one,
    since what is said there often goes on.
    """
    windows: list[ContextWindow] = []
    held: list[tuple[int, str, int]] = []

    def close() -> None:
        text = joiner.join(text for _, text, _ in held)
        windows.append(ContextWindow(text, tuple(dict.fromkeys(chunk for chunk, _, _ in held))))

    for position, chunk in enumerate(chunks):
        for start, end in split_sentences(chunk):
            for part in _fitting(chunk[start:end], count, budget):
                # One more, since two sentences together may have a token more than apart.
                size = count(part) + 1
                if held and sum(each[2] for each in held) + size > budget:
                    close()
                    last = held[-1]
                    goes_on = last[0] == position and len(held) > 1 and last[2] + size <= budget
                    held = [last] if goes_on else []
                held.append((position, part, size))
    if held:
        close()
    return windows


def _fitting(text: str, count: Callable[[str], int], budget: int) -> Iterator[str]:
    """The text in parts below `budget`, halved until they fit."""
    if count(text) < budget or len(text) < 2:
        yield text
        return
    middle = text.rfind(" ", 1, len(text) // 2 + 1)
    cut = middle if middle > 0 else len(text) // 2
    for part in (text[:cut], text[cut:]):
        if part.strip():
            yield from _fitting(part.strip(), count, budget)


_WORD = re.compile(r"\w+")


def _ranked(claim: str, texts: Sequence[str]) -> list[int]:
    """The texts by the words they share with the claim, rare words counting more; best first."""
    sets = [set(_WORD.findall(text.casefold())) for text in texts]
    held_by = Counter(word for words in sets for word in words)
    wanted = set(_WORD.findall(claim.casefold()))
    shared = [math.fsum(1.0 / held_by[word] for word in wanted & words) for words in sets]
    return sorted(range(len(texts)), key=lambda i: -shared[i])


# Pairs of a window and a claim: the best window decides, and the best chunk in it is named.

_DIGITS = 4
_EVEN = 0.5
_UNLIMITED = 1 << 30
_LEAST_WINDOW = 8  # tokens; with less room nothing could be read
_READ_FIRST = 2  # windows that share most with a claim; the others only if these leave it open


def _decide_pairs(
    scorer: ClaimScorer,
    preset: Preset,
    claims: Sequence[str],
    chunks: Sequence[str],
    threshold: float,
) -> VerdictsResult:
    """Decide claims, but for those that leave the model too little room for the context."""
    taken, nothing = [scorer.taken(claim) for claim in claims], scorer.taken("")
    limit = scorer.max_tokens
    # More than half for the claim, and the windows would be scraps.
    room = _UNLIMITED if limit is None else (limit - nothing - _LEAST_WINDOW) // 2
    readable = [i for i, size in enumerate(taken) if size - nothing <= room]
    if not readable:
        return VerdictsResult(verdicts=[], usage=_FREE)
    left = _UNLIMITED if limit is None else limit - max(taken[i] for i in readable)

    def cut(texts: Sequence[str]) -> list[ContextWindow]:
        return _windows(scorer, preset, texts, left)

    windows = cut(chunks)
    found: dict[tuple[int, int], Support] = {}

    def read(wanted: Sequence[tuple[int, int]]) -> None:
        if wanted:
            scores = scorer.score([(windows[window].text, claims[i]) for i, window in wanted])
            found.update(zip(wanted, scores, strict=True))

    orders = {i: _ranked(claims[i], [window.text for window in windows]) for i in readable}
    read([(i, window) for i in readable for window in orders[i][:_READ_FIRST]])
    open_claims = [
        i
        for i in readable
        if all(found[i, window].supported < threshold for window in orders[i][:_READ_FIRST])
    ]
    read([(i, window) for i in open_claims for window in orders[i][_READ_FIRST:]])

    verdicts: dict[int, ClaimVerdict] = {}
    evidence: list[tuple[int, ContextWindow, str]] = []
    for i in readable:
        scores = {window: support for (claim, window), support in found.items() if claim == i}
        best = max(scores, key=lambda window: scores[window].supported)
        against = max(scores, key=lambda window: scores[window].contradicted)
        support = round(scores[best].supported, _DIGITS)
        contradiction = round(scores[against].contradicted, _DIGITS)
        doubt = round(1.0 - support, _DIGITS)
        if support >= threshold:
            reason = f"Entailed with a chance of {support:.0%}."
            verdicts[i] = _verdict(i, "SUPPORTED", support, reason)
            evidence.append((i, windows[best], "supported"))
        elif contradiction > max(support, _EVEN):
            reason = f"Contradicted with a chance of {contradiction:.0%}."
            verdicts[i] = _verdict(i, "CONTRADICTED", doubt, reason)
            evidence.append((i, windows[against], "contradicted"))
        else:
            reason = f"Entailed with a chance of {support:.0%} at most."
            verdicts[i] = _verdict(i, "NOT_ENOUGH_INFO", doubt, reason)
    for i, chunk in _clearest_chunks(scorer, claims, cut, chunks, evidence):
        verdicts[i] = verdicts[i].model_copy(update={"supporting_chunk_ids": [chunk]})
    return VerdictsResult(verdicts=list(verdicts.values()), usage=_FREE)


def _windows(
    scorer: ClaimScorer, preset: Preset, chunks: Sequence[str], left: int
) -> list[ContextWindow]:
    """The windows by the preset's rule, or as long as the model takes, within what is left."""
    most = preset.chunk
    if most is None:
        return windows_of(chunks, scorer.count, budget=left, joiner=preset.joiner)

    def measure(text: str) -> int:
        tokens = scorer.count(text)
        length = len(text.split()) if preset.counts_words else tokens
        return max(length, -(-tokens * most // left))

    return windows_of(chunks, measure, budget=most, joiner=preset.joiner)


def _clearest_chunks(
    scorer: ClaimScorer,
    claims: Sequence[str],
    cut: Callable[[Sequence[str]], list[ContextWindow]],
    chunks: Sequence[str],
    evidence: Sequence[tuple[int, ContextWindow, str]],
) -> Iterator[tuple[int, int]]:
    """The chunk of each claim's window with the highest support alone."""
    asked: list[tuple[int, int, str, str]] = []
    for i, window, field in evidence:
        if len(window.chunks) == 1:
            yield i, window.chunks[0]
        else:
            asked += [
                (i, chunk, part.text, field)
                for chunk in window.chunks
                for part in cut([chunks[chunk]])
            ]
    if not asked:
        return
    scores = scorer.score([(text, claims[i]) for i, _, text, _ in asked])
    best: dict[int, tuple[float, int]] = {}
    for (i, chunk, _, field), support in zip(asked, scores, strict=True):
        value = support.supported if field == "supported" else support.contradicted
        if i not in best or value > best[i][0]:
            best[i] = value, chunk
    yield from ((i, chunk) for i, (_, chunk) in best.items())
