"""Decide claims against a context: signs of a contradiction, support score, reason."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from importlib import resources
from statistics import fmean
from typing import NamedTuple

from ragaliq.core.results import JudgeUsage, Verdict
from ragaliq.judges.base import ClaimVerdict, digest_of
from ragaliq.judges.local.claim import WordFrequencies, denies, read_claim
from ragaliq.judges.local.context import ContextIndex, Match, match_claim
from ragaliq.judges.local.signs import Sign, find_sign, lacks_property
from ragaliq.judges.local.words import FUNCTION_WORDS, is_pair, stems_of

# The support score: features, and the weights that training left behind.


class Features(NamedTuple):
    """One claim against one context.

    Attributes:
        cover: Share of the claim's weight that was found, half of it in the best window and half in
            the whole context.
        run: Longest run of words shared with a sentence, as a share of the claim's words.
        missing_number: 1 if a number of the claim is not in the context.
        miscounted: 1 if all such numbers are in the context, but count something else.
        missing_name: 1 if a name is not in the context.
        missing_property: 1 if a property is not; see `lacks_property`.
        negation: 1 if the claim is negated and the best sentence is not.
        contradiction: 1 if there is a positive sign of a contradiction.
        length: ln(1 + content words): long claims are never covered in full.
    """

    cover: float
    run: float
    missing_number: float
    miscounted: float
    missing_name: float
    missing_property: float
    negation: float
    contradiction: float
    length: float


WORDS_FILE = "words.json.gz"
MODEL_FILE = "model.json"
FOLDER = "parameters"


_MOST_UNFOUND = 0.45  # most that a claim gets whose number or name is nowhere


class Parameters(NamedTuple):
    """Trained parameters: weights of words, and a logistic model of support.

    Attributes:
        frequencies: Document counts of words.
        intercept: Intercept with which 0.5 is the threshold.
        weights: One for each feature.
        digest: A hash of the files.
    """

    frequencies: WordFrequencies
    intercept: float
    weights: Features
    digest: str = ""

    def support(self, features: Features) -> float:
        """The support score, 0 to 1; 0.5 and more counts as supported. Not a probability.

        A claim with a number, a name or a property that the context lacks is never supported.
        """
        total = self.intercept + sum(map(float.__mul__, self.weights, features))
        support = 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, total))))
        is_unfound = (
            features.missing_number
            or features.miscounted
            or features.missing_name
            or features.missing_property
        )
        return min(support, _MOST_UNFOUND) if is_unfound else support


@cache
def load_parameters() -> Parameters:
    """The parameters shipped with the package, read once in a process."""
    folder = resources.files(__package__) / FOLDER
    model, packed = ((folder / name).read_bytes() for name in (MODEL_FILE, WORDS_FILE))
    weights, stored = json.loads(model), json.loads(gzip.decompress(packed))
    counts = {
        word: int(count) for count, words in stored["words"].items() for word in words.split()
    }
    return Parameters(
        WordFrequencies(stored["documents"], counts),
        weights["intercept"],
        Features(**weights["weights"]),
        digest_of(model, packed),
    )


LEAST_UNLABELLED = 300
"""Claims from which on the threshold of an application is known without labels."""

_SURENESS = 1e-4  # a support nearer to 0 or 1 counts as this near


def threshold_of(supports: Iterable[float]) -> float:
    """Threshold for the claims of one application, by their support alone.

    It lies halfway, in log-odds, between the fixed threshold and the mean of the claims: an
    application that keeps close to its documents' words has more support for wrong claims too. All
    the way, the share of true claims would move it too far. A claim whose number or name is nowhere
    stays below it.
    """
    bounded = (min(max(support, _SURENESS), 1.0 - _SURENESS) for support in supports)
    level = fmean(math.log(support / (1.0 - support)) for support in bounded)
    return max(_MOST_UNFOUND + 0.001, round(1.0 / (1.0 + math.exp(-level / 2)), 4))


async def parameters_off_loop() -> Parameters:
    """Load the parameters, the first time in a thread, so as not to block the loop."""
    if not load_parameters.cache_info().currsize:
        # Refused at the end of the interpreter, when a blocked event loop does not matter.
        with suppress(RuntimeError):
            return await asyncio.to_thread(load_parameters)
    return load_parameters()


# The verdict.

THRESHOLD = 0.5
FREE = JudgeUsage()
_KEPT = 4  # contexts
_MOST_NAMED = 5  # missing words a reason names
_MOST_QUOTED = 160  # characters of a sentence
_COUNTED = 2  # words shown after a number: "nine working days"
_SURFACE = re.compile(
    r"[^\W\d_]++(?:['’][^\W\d_]++)*+"
    r"|(?:[1-9]\d{0,2}(?: \d{3})+|\d+(?:[.,:]\d+)*)(?:\s?(?:k|mn|bn|thousand|million|billion)\b)?"
)


def examine(
    claim: str, context: ContextIndex, frequencies: WordFrequencies
) -> tuple[Match, Sign | None, Features]:
    """Compute everything the verdict on a claim depends on; also used by training."""
    parts = read_claim(claim, frequencies)
    match = match_claim(parts, context)
    sign = find_sign(parts, match, context)
    features = Features(
        cover=(match.window_cover + match.context_cover) / 2,
        run=context.longest_run(parts.stems) / max(len(parts.stems), 1),
        missing_number=float(bool(match.missing_numbers) and not match.is_miscounted),
        miscounted=float(bool(match.missing_numbers) and match.is_miscounted),
        missing_name=float(bool(match.missing_names)),
        missing_property=float(lacks_property(parts, match, context)),
        negation=float(parts.negated and not denies(context.stems(match.sentence))),
        contradiction=float(sign is not None),
        length=math.log1p(len(parts.weights)),
    )
    return match, sign, features


read_context = lru_cache(maxsize=_KEPT)(ContextIndex)
"""The index of a context; the last few are kept, as claims are often asked one by one."""


def decide(
    claim: str, context: ContextIndex, parameters: Parameters, *, index: int | None = None
) -> ClaimVerdict:
    """Decide one claim. The confidence is a score, not a calibrated probability."""
    if not context.texts:
        reason = "The context is empty."
        return ClaimVerdict(verdict="NOT_ENOUGH_INFO", reason=reason, index=index, usage=FREE)
    match, sign, features = examine(claim, context, parameters.frequencies)
    support = round(parameters.support(features), 4)
    sentence = context.texts[match.sentence]
    named = ""
    if match.missing and sign is None:
        named = ", ".join(_as_written(claim, match.missing[:_MOST_NAMED]))
    verdict: Verdict = "NOT_ENOUGH_INFO"
    confidence, evidence, chunks = 1.0 - support, "", list[int]()
    if sign is not None:
        verdict, confidence = "CONTRADICTED", max(1.0 - support, 1.0 - THRESHOLD)
        evidence, chunks = sentence, [context.chunk_of[match.sentence]]
        reason = (
            f"The claim and the closest sentence differ in negation: {_quoted(sentence)}."
            if sign.kind == "negation"
            else _difference(claim, sentence, sign)
        )
    elif support >= THRESHOLD:
        verdict, confidence, evidence, chunks = "SUPPORTED", support, sentence, match.chunk_ids
        reason = f"Closest sentence: {_quoted(sentence)}."
        if named:
            reason += f" Not in the context: {named}."
    elif named:
        reason = f"Not supported by wording: the context does not have {named}."
    elif not features.length:
        reason = "The claim has no words to compare."
    else:
        reason = (
            "Not supported by wording: the claim's words occur in the context, but not "
            f"together. Closest sentence: {_quoted(sentence)}."
        )
    return ClaimVerdict(
        verdict=verdict,
        confidence=round(confidence, 4),
        reason=reason,
        evidence=evidence,
        supporting_chunk_ids=chunks,
        index=index,
        usage=FREE,
    )


def _quoted(sentence: str) -> str:
    """A sentence in quotes, on one line and cut where it is long."""
    text = " ".join(sentence.split())
    return f'"{text if len(text) <= _MOST_QUOTED else f"{text[: _MOST_QUOTED - 1]}…"}"'


def _difference(claim: str, sentence: str, sign: Sign) -> str:
    shown = []
    for text, stems in ((claim, sign.claimed), (sentence, sign.stated)):
        written = _as_written(text, stems)
        if sign.kind == "number":  # with what it counts: "nine working days"
            words = _SURFACE.findall(text)
            at = words.index(written[0]) + 1 if written[0] in words else len(words)
            follows = itertools.takewhile(_is_content, words[at : at + _COUNTED])
            written[0] = " ".join([written[0], *follows])
        shown.append((", " if sign.kind == "number" else " ").join(written))
    return f"Another {sign.kind}. Claim: {shown[0]}; closest sentence: {shown[1]}."


def _is_content(word: str) -> bool:
    return all(found not in FUNCTION_WORDS and found[0] != "#" for found in stems_of(word))


def _as_written(text: str, stems: Sequence[str]) -> list[str]:
    """Words of a text with these stems; a stem itself if its word is unknown."""
    forms, wanted = dict[str, str](), set(stems)
    for word in _SURFACE.findall(text):
        for found in wanted.intersection(stems_of(word)):
            forms.setdefault(found, word)
    shown = (found if is_pair(found) else forms.get(found, found.lstrip("#")) for found in stems)
    return list(dict.fromkeys(shown))
