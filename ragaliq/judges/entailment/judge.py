"""`EntailmentJudge`: a small model that says whether a claim follows from a text."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Self

from ragaliq.core.checks import require_positive
from ragaliq.core.results import JudgeUsage, Verdict
from ragaliq.errors import ConfigurationError, JudgeAPIError, JudgeError
from ragaliq.judges.base import ClaimVerdict, VerdictsResult, digest_of, spent_before
from ragaliq.judges.entailment.loading import ModelChoice
from ragaliq.judges.entailment.models import ClaimScorer, Pair, Support, TokenScorer
from ragaliq.judges.entailment.presets import PRESETS, Preset, passages_prompt
from ragaliq.judges.language.sentences import split_sentences
from ragaliq.judges.local.judge import WordingJudge

_LOG = logging.getLogger(__name__)


class EntailmentJudge(WordingJudge):
    """Decides by a small model: a preset, any classifier of two texts, or a function.

    A claim is supported as far as the window of the context that supports it most does. Its
    confidence is the model's own chance, no probability until a `CalibratedJudge` makes it one.
    Claims are found as the embedded judge finds them, and relevance is scored as it scores it: such
    a model says nothing about a question.

    Needs `pip install 'ragaliq[entailment]'`, or `ragaliq[entailment-onnx]` for ONNX files only; a
    served model needs neither.

    Args:
        model: The name of a preset (`ragaliq.judges.entailment.PRESETS`), a folder with a Hugging
            Face classifier, an `.onnx` file, a repository on the hub, or a function from (context,
            claim) pairs to chances of support.
        path: Of a preset: its folder, `.onnx` file, or repository; by default the folder of its
            name in `RAGALIQ_MODELS`.
        base_url: Of a served preset: the server, such as `http://localhost:8000/v1`.
        served_as: The model's name on that server; by default its repository.
        api_key: The server's key; by default none is sent.
        labels: A verdict for each of the model's outputs, in order; by default as the preset or the
            model's configuration names them, and refused where that says nothing.
        device: Such as `cpu` or `cuda`; by default the best one there is. On the CPU a folder's
            ONNX file is preferred.
        dtype: Such as `bfloat16`, for torch.
        threads: Threads of the processor the model may use; for torch this holds process-wide.
        batch_size: Pairs scored at once.
        max_tokens: Tokens of a window and a claim together; by default what the model takes.
        threshold: Chance of support from which on a claim is supported; by default the preset's,
            else 0.5.
        download: Fetch a repository that is not in the local cache. Nothing is fetched otherwise.

    Raises:
        ConfigurationError: The extra is missing, or the model is not what it is asked as.
    """

    name = "entailment"
    kind = "nli"
    _undecided = ", which are longer than half of what the model reads at once"

    def __init__(
        self,
        model: str | Path | Callable[[list[Pair]], Sequence[float]],
        *,
        path: str | Path | None = None,
        base_url: str | None = None,
        served_as: str | None = None,
        api_key: str | None = None,
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
            base_url=base_url,
            served_as=served_as,
            api_key=api_key,
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
        if not self._preset.is_commercial:
            _LOG.warning("%s: %s", self._preset.name, self._preset.licence)
        self.model = self._scorer.name
        self.threshold = threshold or self._preset.threshold
        self._fingerprint = ""
        # Tokenizers and sessions are not made for two threads at once; a server is.
        is_served = self._preset.head == "served"
        self._lock: Any = nullcontext() if is_served else threading.Lock()

    @property
    def _scorer(self) -> ClaimScorer:
        if self._held is None:
            self._preset, self._held = self._choice.load()
        return self._held

    @property
    def plan(self) -> dict[str, Any] | None:
        """How another process makes the same judge, as plain data.

        None for a function, which is no data, and for a server, which needs no process.
        """
        if callable(self._choice.model) or self._choice.base_url is not None:
            return None
        return {**self._choice._asdict(), "threshold": self.threshold}

    def unload(self) -> None:
        """Give the model's memory back; it is loaded again where this process needs it."""
        if self.plan is not None:
            self.fingerprint()
            self._held = None

    @classmethod
    def named(cls, spec: str, *, path: str | Path | None = None) -> Self:
        """The judge that `entailment:NAME` or `entailment:NAME@WHERE` names.

        WHERE is the folder or file of a preset, or the address of the server of a served one. In
        the place of a preset's name a folder may stand.

        Raises:
            ConfigurationError: There is no such preset, or it cannot be loaded.
        """
        name, _, where = spec.removeprefix("entailment:").partition("@")
        if name not in PRESETS:
            if Path(name).exists() and not where and path is None:
                return cls(name)
            raise ConfigurationError(
                f"there is no small judge {name!r}; use one of {', '.join(PRESETS)}, or a folder"
            )
        if PRESETS[name].head == "served":
            return cls(name, base_url=where or None)
        return cls(name, path=where or path)

    def fingerprint(self) -> str:
        """Changes with the model's parameters, how it is asked, and the threshold."""
        if not self._fingerprint:
            self._fingerprint = digest_of(
                self.name, self.model or "", self._scorer.fingerprint(), f"{self.threshold}"
            )
        return self._fingerprint

    async def verify_claims(self, claims: Sequence[str], context: Sequence[str]) -> VerdictsResult:
        """Decide all claims; one that is too long for the model has no verdict."""
        # Off the event loop: a batch takes a second on a CPU, in which nothing else would run.
        return await asyncio.to_thread(self._decide, claims, context)

    async def grade_statements(
        self, query: str, response: str, context: Sequence[str]
    ) -> VerdictsResult:
        """Find the answer's claims and decide them."""
        found = await self.extract_statements(query, response)
        reply = await asyncio.to_thread(self._decide, found.claims, context, query, response)
        return self._graded(found, reply)

    def _decide(
        self,
        claims: Sequence[str],
        context: Sequence[str],
        question: str = "",
        answer: str = "",
    ) -> VerdictsResult:
        if not any(chunk.strip() for chunk in context):
            reason = "The context is empty."
            empty = [_verdict(i, "NOT_ENOUGH_INFO", 1.0, reason) for i in range(len(claims))]
            return VerdictsResult(verdicts=empty, usage=_FREE)
        try:
            with self._lock:
                if isinstance(self._scorer, TokenScorer):
                    reader = _AnswerReader(self._scorer, context, self.threshold, question)
                    return VerdictsResult(verdicts=reader.decide(claims, answer), usage=_FREE)
                return _decide_pairs(self._scorer, self._preset, claims, context, self.threshold)
        except JudgeError:
            raise
        except Exception as error:  # noqa: BLE001 - a model may fail in any way; texts stay unsaid
            raise JudgeAPIError(
                f"the model {self.model} failed with {type(error).__name__}; try a smaller "
                "batch_size, or another device"
            ) from None


_FREE = JudgeUsage()


def _verdict(
    index: int, verdict: Verdict, confidence: float, reason: str, chunks: Sequence[int] = ()
) -> ClaimVerdict:
    return ClaimVerdict(
        index=index,
        verdict=verdict,
        confidence=confidence,
        reason=reason,
        supporting_chunk_ids=list(chunks),
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
    usage = _FREE

    def read(wanted: Sequence[tuple[int, int]]) -> None:
        nonlocal usage
        if wanted:
            with spent_before(usage):
                scores = scorer.score([(windows[window].text, claims[i]) for i, window in wanted])
            found.update(zip(wanted, scores.supports, strict=True))
            usage += scores.usage

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
    is_served = preset.head == "served"
    for i, chunk in _clearest_chunks(scorer, claims, chunks, cut, evidence, is_served=is_served):
        verdicts[i] = verdicts[i].model_copy(update={"supporting_chunk_ids": [chunk]})
    return VerdictsResult(verdicts=list(verdicts.values()), usage=usage)


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
    chunks: Sequence[str],
    cut: Callable[[Sequence[str]], list[ContextWindow]],
    evidence: Sequence[tuple[int, ContextWindow, str]],
    *,
    is_served: bool,
) -> Iterator[tuple[int, int]]:
    """For each claim the chunk of its window that says it most clearly by itself."""
    asked: list[tuple[int, int, str, str]] = []
    for i, window, field in evidence:
        if len(window.chunks) == 1:
            yield i, window.chunks[0]
        elif is_served:  # to ask about each chunk would be dear
            yield i, window.chunks[_ranked(claims[i], [chunks[c] for c in window.chunks])[0]]
        else:
            asked += [
                (i, chunk, part.text, field)
                for chunk in window.chunks
                for part in cut([chunks[chunk]])
            ]
    if not asked:
        return
    scores = scorer.score([(text, claims[i]) for i, _, text, _ in asked]).supports
    best: dict[int, tuple[float, int]] = {}
    for (i, chunk, _, field), support in zip(asked, scores, strict=True):
        value = support.supported if field == "supported" else support.contradicted
        if i not in best or value > best[i][0]:
            best[i] = value, chunk
    yield from ((i, chunk) for i, (_, chunk) in best.items())


# A whole answer at once: the parts that are unsupported, mapped onto its claims.


class _AnswerReader:
    """Decides the claims of an answer by a token classifier.

    Where the passages do not fit into one prompt, the prompt that supports a claim most decides.
    """

    def __init__(
        self, scorer: TokenScorer, chunks: Sequence[str], threshold: float, question: str
    ) -> None:
        self._scorer, self._chunks, self._threshold = scorer, chunks, threshold
        self._question = question
        self._limit = scorer.max_tokens or _UNLIMITED
        self._frame = scorer.taken("") + scorer.count(passages_prompt([""], question))

    def decide(self, claims: Sequence[str], answer: str) -> list[ClaimVerdict]:
        """Decide the claims, but for those that are too long."""
        room = (self._limit - self._frame - _LEAST_WINDOW) // 2
        places = _places(claims, answer)
        if places and self._scorer.count(answer) <= room:
            return self._read(answer, dict(enumerate(places)))
        verdicts = []
        for group in self._groups(claims, room):
            together = [claims[i] for i in group]
            text = " ".join(together)
            verdicts += self._read(text, dict(zip(group, _places(together, text), strict=True)))
        return verdicts

    def _groups(self, claims: Sequence[str], room: int) -> Iterator[list[int]]:
        """The positions of claims that fit into one answer together."""
        group: list[int] = []
        for i, claim in enumerate(claims):
            if self._scorer.count(claim) > room:
                continue
            if group and self._scorer.count(" ".join(claims[j] for j in [*group, i])) > room:
                yield group
                group = []
            group.append(i)
        if group:
            yield group

    def _read(self, answer: str, places: Mapping[int, tuple[int, int]]) -> list[ClaimVerdict]:
        """Decide the claims whose places in the answer these are."""
        prompts = self._prompts(self._limit - self._frame - self._scorer.count(answer))
        read = self._scorer.unsupported(
            [passages_prompt([text for _, text in each], self._question) for each in prompts],
            answer,
        )
        verdicts = []
        for i, (start, end) in places.items():
            inside = [
                [each for each in spans if each[0] < end and each[1] > start] for spans in read
            ]
            worst = [max((chance for _, _, chance in spans), default=0.0) for spans in inside]
            best = min(range(len(worst)), key=worst.__getitem__)
            support = round(1.0 - worst[best], _DIGITS)
            if support >= self._threshold:
                chunks = [chunk for chunk, _ in prompts[best]]
                order = _ranked(answer[start:end], [self._chunks[chunk] for chunk in chunks])
                reason = f"No part is unsupported with a chance above {worst[best]:.0%}."
                verdicts.append(_verdict(i, "SUPPORTED", support, reason, [chunks[order[0]]]))
                continue
            bad = [each for each in inside[best] if 1.0 - each[2] < self._threshold]
            part = answer[bad[0][0] : bad[-1][1]].strip()
            reason = f'Unsupported with a chance of {worst[best]:.0%}: "{part}".'
            doubt = round(worst[best], _DIGITS)
            verdicts.append(_verdict(i, "NOT_ENOUGH_INFO", doubt, reason))
        return verdicts

    def _prompts(self, budget: int) -> list[list[tuple[int, str]]]:
        """The passages, with their chunks' positions, in groups that fit; long ones are cut."""
        groups: list[list[tuple[int, str]]] = []
        used = budget
        for position, chunk in enumerate(self._chunks):
            for part in windows_of([chunk], self._scorer.count, budget=max(2, budget - 8)):
                size = self._scorer.count(f"passage {position + 1}: {part.text}") + 1
                if used + size > budget or not groups:
                    groups.append([])
                    used = 0
                groups[-1].append((position, part.text))
                used += size
        return groups


def _places(claims: Sequence[str], answer: str) -> list[tuple[int, int]]:
    """Where each claim stands in the answer, in their order; nothing unless all do."""
    places: list[tuple[int, int]] = []
    at = 0
    for claim in claims:
        start = answer.find(claim, at)
        if start < 0:
            return []
        at = start + len(claim)
        places.append((start, at))
    return places
