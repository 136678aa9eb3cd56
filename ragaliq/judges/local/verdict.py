"""Decide claims against a context: match, signs of a contradiction, support score, reason."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple

from ragaliq.core.results import Verdict
from ragaliq.judges.base import digest_of
from ragaliq.judges.local.claim import (
    ABSOLUTES,
    ClaimWords,
    WordFrequencies,
    clauses,
    denied_words,
    denies,
    denies_all,
    names_in,
    read_claim,
    says_no_otherwise,
)
from ragaliq.judges.local.context import ContextIndex
from ragaliq.judges.local.numbers import UNITS, Number, other_unit
from ragaliq.judges.local.words import FUNCTION_WORDS, is_pair, read_words, stem, stems_of

__all__ = [
    "FOLDER",
    "MODEL_FILE",
    "WORDS_FILE",
    "Decision",
    "Features",
    "Match",
    "Parameters",
    "Sign",
    "SupportModel",
    "Verifier",
    "examine",
    "load_parameters",
    "match_claim",
    "parameters_off_loop",
]


# Where the context agrees with a claim best, and what of the claim is not there.

_WINDOW = 3  # sentences read together
_RELATED = 0.8  # credit for another form of the word
_NEAR = 0.95  # of the best sentence's share, for another one to count as well
_MOST_NEAR = 8
_COMMON = 512  # sentences; a word in more of them does not tell them apart


@dataclass(frozen=True, slots=True)
class Match:
    """How a claim's words lie in the context. Shares are of the claim's weight, 0 to 1.

    Attributes:
        sentence: Position of the sentence that covers most; -1 in an empty context.
        near: The first sentences that cover about as much, the best among them.
        sentence_cover: Its share.
        window_cover: Share covered by the best three neighbouring sentences of a passage.
        chunk_cover: Share covered by the best passage: a chunk and what continues it.
        context_cover: Share covered by the whole context.
        chunk_ids: Chunks with a sentence about as good as the best.
        found: Words of the claim that stand in the best sentence, in any form.
        missing: Content words that stand nowhere in the context, the most telling first.
        missing_numbers: Numbers that stand nowhere.
        missing_names: Names that stand nowhere.
        far_numbers: Numbers that stand in none of the `near` sentences.
        far_names: Names that stand in none of them.
    """

    sentence: int
    near: list[int]
    sentence_cover: float
    window_cover: float
    chunk_cover: float
    context_cover: float
    chunk_ids: list[int]
    found: frozenset[str]
    missing: list[str]
    missing_numbers: list[Number]
    missing_names: list[str]
    far_numbers: list[Number]
    far_names: list[str]


def match_claim(claim: ClaimWords, context: ContextIndex) -> Match:
    """Look every content word of a claim up in the context."""
    places = _places(claim, context)
    sentences, windows, chunks = _covers(claim, context, places)
    total = sum(claim.weights.values()) or 1.0
    best = max(range(len(sentences)), key=sentences.__getitem__, default=-1)
    near = _near_best(sentences)
    here = set(near)
    missing = [word for word in claim.weights if word not in places]
    return Match(
        sentence=best,
        near=near[:_MOST_NEAR],
        sentence_cover=sentences[best] / total if sentences else 0.0,
        window_cover=max(windows, default=0.0) / total,
        chunk_cover=max(chunks, default=0.0) / total,
        context_cover=sum(claim.weights[word] * credit for word, (credit, _) in places.items())
        / total,
        chunk_ids=sorted({context.chunk_of[at] for at in near}),
        found=frozenset(word for word, (_, where) in places.items() if best in where),
        missing=sorted(missing, key=lambda word: (-claim.weights[word], word)),
        missing_numbers=[
            number for number in claim.numbers if not any(map(context.places, number.values))
        ],
        missing_names=sorted(claim.names.intersection(missing)),
        far_numbers=[
            number
            for number in claim.numbers
            if all(map(here.isdisjoint, map(context.places, number.values)))
        ],
        far_names=sorted(
            name
            for name in claim.names & claim.weights.keys()
            if name not in places or here.isdisjoint(places[name][1])
        ),
    )


def _places(claim: ClaimWords, context: ContextIndex) -> dict[str, tuple[float, Sequence[int]]]:
    """Content word -> credit and the sentences it stands in, for the words that are there."""
    readings = {number.values[0]: number.values for number in claim.numbers}
    places: dict[str, tuple[float, Sequence[int]]] = {}
    for word in claim.weights:
        exact = next(filter(None, map(context.places, readings.get(word, (word,)))), None)
        if exact:
            places[word] = 1.0, exact
        elif related := context.related(word):
            places[word] = _RELATED, _merged(map(context.places, related))
    return places


def _merged(postings: Iterable[Sequence[int]]) -> list[int]:
    return sorted({sentence for posting in postings for sentence in posting})


def _covers(
    claim: ClaimWords, context: ContextIndex, places: dict[str, tuple[float, Sequence[int]]]
) -> tuple[list[float], list[float], list[float]]:
    """Weight found in each sentence, each window (by its first sentence), each passage."""
    sentences = [0.0] * len(context.chunk_of)
    windows = [0.0] * len(context.chunk_of)
    chunks = [0.0] * len(context.chunks)
    passage_of = context.passage_of
    everywhere = 0.0
    for word, (credit, where) in places.items():
        gain = claim.weights[word] * credit
        if len(where) > _COMMON:
            everywhere += gain
            continue
        window_done, chunk_done = -1, -1
        for at in where:
            sentences[at] += gain
            chunk = passage_of[at]
            first = at - _WINDOW + 1
            for start in range(first if first > window_done else window_done + 1, at + 1):
                if passage_of[start] == chunk:
                    windows[start] += gain
            window_done = at
            if chunk != chunk_done:
                chunks[chunk] += gain
                chunk_done = chunk
    if everywhere:
        sentences, windows, chunks = (
            [share + everywhere for share in shares] for shares in (sentences, windows, chunks)
        )
    return sentences, windows, chunks


def _near_best(sentences: list[float]) -> list[int]:
    least = max(sentences, default=0.0) * _NEAR
    return [at for at, share in enumerate(sentences) if share >= least] if least > 0.0 else []


# A sentence that matches, but for a number, a unit, a name or a negation. A claim whose words are
# merely absent is not contradicted.

_NUMBER_COVER = 0.7  # share of the rest of the claim the sentence must cover
_FAR_COVER = 0.9  # the same where the context has the number in another sentence
_NAME_COVER = 0.9
_NEGATION_COVER = 0.85
_UNITS = {stem(unit): unit for unit in UNITS}
_DECIMAL = re.compile(r"#\d+(?:\.\d+)?(?:e\+\d+)?")
_LEAST_WORDS = 2  # content words of the rest; with fewer, agreement is chance


class Sign(NamedTuple):
    """Why a claim counts as contradicted.

    Attributes:
        kind: `number`, `measure`, `name` or `negation`.
        claimed: What the claim has, as stems; empty for a negation.
        stated: What the sentence has instead.
    """

    kind: str
    claimed: tuple[str, ...] = ()
    stated: tuple[str, ...] = ()


def find_sign(
    claim: ClaimWords, match: Match, context: ContextIndex, frequencies: WordFrequencies
) -> Sign | None:
    """The first sign of a contradiction between a claim and the sentence that matches it best."""
    if match.sentence < 0:
        return None
    return (
        _other_number(claim, match, context)
        or _other_unit(claim, match, context)
        or _other_name(claim, match, context, frequencies)
        or _negation(claim, match, context)
    )


def _rest(claim: ClaimWords, match: Match, without: Sequence[str]) -> tuple[float, int]:
    """Share of the claim the sentence covers when some words are left out, and words it has."""
    rest = {word: weight for word, weight in claim.weights.items() if word not in without}
    found = [word for word in rest if word in match.found]
    total = sum(rest.values())
    return (sum(rest[word] for word in found) / total if total else 0.0), len(found)


def _other_number(claim: ClaimWords, match: Match, context: ContextIndex) -> Sign | None:
    """A number that the sentence has with another value.

    Also where another sentence has it: "nine working days" and "the shop opens at nine".
    """
    if not match.far_numbers:
        return None
    claimed = {value for number in claim.numbers for value in number.values}
    stated = [
        number for number in context.numbers(match.sentence) if claimed.isdisjoint(number.values)
    ]
    if any(_rounds(one, other) for one in match.far_numbers for other in stated):
        return None
    absent = match.missing_numbers or match.far_numbers
    least = _NUMBER_COVER if match.missing_numbers else _FAR_COVER
    same_kind = [number for number in stated if number.year == absent[0].year and number.certain]
    cover, words = _rest(claim, match, [number.values[0] for number in absent])
    if same_kind and cover >= least and words >= _LEAST_WORDS:
        return Sign("number", _shown(absent), _shown(same_kind))
    return None


def _rounds(claimed: Number, stated: Number) -> bool:
    """Whether one number is the other in fewer digits: 1.2 billion and 1.18 billion."""
    return not claimed.year and any(
        len(digits := value.strip("#0").replace(".", "").rstrip("0")) > 1
        and float(f"{float(other[1:]):.{len(digits)}g}") == float(value[1:])
        for value in claimed.values
        for other in stated.values
        if _DECIMAL.fullmatch(value) and _DECIMAL.fullmatch(other)
    )


def _shown(numbers: Sequence[Number]) -> tuple[str, ...]:
    return tuple(number.values[0] for number in numbers)


def _other_name(
    claim: ClaimWords, match: Match, context: ContextIndex, frequencies: WordFrequencies
) -> Sign | None:
    absent = match.missing_names or match.far_names
    cover, words = _rest(claim, match, absent)
    if not absent or cover < _NAME_COVER or words < _LEAST_WORDS:
        return None
    theirs = context.stems(match.sentence)
    others = names_in(context.text(match.sentence), frequencies) - claim.weights.keys()
    stated_in = _framed(theirs, others)
    for frame, run in _framed(claim.stems, claim.names):
        claimed = claim.stems[run.start : run.stop]
        if not claim.weights.keys() & set(claimed) <= set(absent):
            continue  # "Rupert Murdoch" against "Murdoch" is the same name
        for other, place in stated_in:
            if _same_place(frame, other):
                return Sign("name", tuple(claimed), tuple(theirs[place.start : place.stop]))
    return None


Frame = tuple[str, str, str, str]


def _framed(stems: Sequence[str], names: Collection[str]) -> list[tuple[Frame, range]]:
    """Each name with the two words before and after it; empty beyond the ends."""
    padded = ["", "", *stems, "", ""]
    return [
        (
            (padded[run.start], padded[run.start + 1], padded[run.stop + 2], padded[run.stop + 3]),
            run,
        )
        for run in _runs(stems, names)
    ]


def _runs(stems: Sequence[str], names: Collection[str]) -> list[range]:
    """Where names stand: neighbouring ones are one name."""
    runs: list[range] = []
    for at, word in enumerate(stems):
        if word in names:
            begins = runs.pop().start if runs and runs[-1].stop == at else at
            runs.append(range(begins, at + 1))
    return runs


def _same_place(one: Frame, other: Frame) -> bool:
    """Whether two names stand in the same place: two words agree on a side, or one on each."""
    before = one[1] != "" and one[:2] == other[:2]
    after = one[2] != "" and one[2:] == other[2:]
    return before or after or one[1:3] == other[1:3]


def _other_unit(claim: ClaimWords, match: Match, context: ContextIndex) -> Sign | None:
    """The same number with another unit: five days against five weeks."""
    found = other_unit(claim.stems, context.stems(match.sentence), _UNITS)
    if found is None:
        return None
    claimed, stated = found
    cover, words = _rest(claim, match, claimed)
    if cover >= _NUMBER_COVER and words >= _LEAST_WORDS:
        return Sign("measure", claimed, stated)
    return None


def _negation(claim: ClaimWords, match: Match, context: ContextIndex) -> Sign | None:
    cover, words = _rest(claim, match, ())
    if cover < _NEGATION_COVER or not words:
        return None
    # Another sentence that matches as well may agree.
    differs = all(_opposed(claim, match, context, at) for at in match.near)
    return Sign("negation") if differs and match.near else None


def _opposed(claim: ClaimWords, match: Match, context: ContextIndex, sentence: int) -> bool:
    """Whether one side denies what the other says."""
    stems = context.stems(sentence)
    if claim.negated:  # any negation in the sentence may be the one the claim repeats
        told = len(match.found) >= _LEAST_WORDS or not claim.denied.isdisjoint(stems)
        return told and not denies(stems) and not says_no_otherwise(stems)
    if not denies(stems) or says_no_otherwise(set(claim.stems).difference(stems)):
        return False
    parts = list(clauses(context.text(sentence)))
    # What the sentence says without a denial too, it does not deny: "(winter does not occur in the
    # tropics)" after a clause about winter.
    said = {word for part in parts if not denies(part) for word in part}
    return any(_denied(part, match.found - said, match.found) for part in parts)


def _denied(clause: Sequence[str], denied: frozenset[str], found: frozenset[str]) -> bool:
    """Whether a clause denies the words it shares with the claim."""
    if not denied.isdisjoint(denied_words(clause, any_negation=len(found) < _LEAST_WORDS)):
        return True
    return denies_all(clause) and len(denied & set(clause)) >= _LEAST_WORDS


# The support score: features, and the weights that training left behind.


class Features(NamedTuple):
    """One claim against one context.

    Attributes:
        cover: Share of the claim's weight found, the nearer together the better: half of it counts
            in the best window, a quarter in the best chunk, a quarter in the whole context.
        run: Longest run of words shared with a sentence, as a share of the claim's words.
        missing_number: 1 where a number of the claim stands nowhere in the context.
        missing_name: 1 where a name stands nowhere.
        negation: 1 where the claim denies and the best sentence does not.
        absolutes: Words such as "only", "always", "more" that the best sentence does not have,
            0 to 2.
        contradiction: 1 where there is a positive sign of a contradiction.
        length: ln(1 + content words): long claims are never covered in full.
    """

    cover: float
    run: float
    missing_number: float
    missing_name: float
    negation: float
    absolutes: float
    contradiction: float
    length: float


def measure(
    claim: ClaimWords,
    match: Match,
    context: ContextIndex,
    *,
    sentence: Sequence[str],
    sign: Sign | None,
) -> Features:
    """Measure how a matched claim stands.

    Args:
        claim: The claim.
        match: Where its words were found.
        context: Where they were looked for.
        sentence: All words of the best sentence.
        sign: What speaks for a contradiction, if anything.
    """
    best = set(sentence)
    absent = sum(word in ABSOLUTES and word not in best for word in claim.stems)
    return Features(
        cover=match.window_cover / 2 + match.chunk_cover / 4 + match.context_cover / 4,
        run=_longest_run(claim.stems, context),
        missing_number=float(bool(match.missing_numbers)),
        missing_name=float(bool(match.missing_names)),
        negation=float(claim.negated and not denies(sentence)),
        absolutes=float(min(absent, 2)),
        contradiction=float(sign is not None),
        length=math.log1p(len(claim.weights)),
    )


def _longest_run(stems: list[str], context: ContextIndex) -> float:
    """Words in the longest chain of shared three-word runs, as a share of the claim."""
    longest = run = 0
    for shingle in zip(stems, stems[1:], stems[2:], strict=False):
        run = run + 1 if context.says(*shingle) else 0
        longest = max(longest, run)
    return (longest + 2) / len(stems) if longest else 0.0


WORDS_FILE = "words.json.gz"
MODEL_FILE = "model.json"
FOLDER = "parameters"


_WITHOUT_NUMBER = 0.45  # most that a claim gets whose number is nowhere


class SupportModel(NamedTuple):
    """A logistic model: the share of support a claim's features speak for.

    Attributes:
        intercept: Such that 0.5 is the threshold.
        weights: One for each feature.
    """

    intercept: float
    weights: Features

    def support(self, features: Features) -> float:
        """The support score, 0 to 1; 0.5 and more counts as supported. Not a probability.

        A claim with a number that the context does not have is never supported.
        """
        total = self.intercept + sum(
            weight * value for weight, value in zip(self.weights, features, strict=True)
        )
        support = 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, total))))
        return min(support, _WITHOUT_NUMBER) if features.missing_number else support


class Parameters(NamedTuple):
    """What training left behind.

    Attributes:
        frequencies: How much each word tells.
        model: The weights of the features.
        digest: A hash of the files.
    """

    frequencies: WordFrequencies
    model: SupportModel
    digest: str


@cache
def load_parameters() -> Parameters:
    """The parameters shipped with the package, read once in a process."""
    folder = resources.files(__package__) / FOLDER
    model, packed = (folder / MODEL_FILE).read_bytes(), (folder / WORDS_FILE).read_bytes()
    weights, stored = json.loads(model), json.loads(gzip.decompress(packed))
    counts = {
        word: int(count) for count, words in stored["words"].items() for word in words.split()
    }
    return Parameters(
        WordFrequencies(stored["documents"], counts, stored["names"].split()),
        SupportModel(weights["intercept"], Features(**weights["weights"])),
        digest_of(model, packed),
    )


async def parameters_off_loop() -> Parameters:
    """The same; the first time they are read in a thread, as a file must not block the loop."""
    if load_parameters.cache_info().currsize:
        return load_parameters()
    return await asyncio.to_thread(load_parameters)


# The verdict.

_THRESHOLD = 0.5
_KEPT = 4  # contexts
_MOST_NAMED = 5  # missing words a reason names
_MOST_QUOTED = 160  # characters of a sentence
_COUNTED = 2  # words shown after a number: "nine working days"
_SURFACE = re.compile(r"[1-9]\d{0,2}(?: \d{3})+|\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")


class Decision(NamedTuple):
    """What was decided about one claim; the fields are those of `ClaimVerdict`."""

    verdict: Verdict
    confidence: float
    reason: str
    evidence: str = ""
    supporting_chunk_ids: Sequence[int] = ()


def examine(
    claim: str, context: ContextIndex, frequencies: WordFrequencies
) -> tuple[Match, Sign | None, Features]:
    """Everything the verdict on a claim rests on; the training recipe starts here too."""
    parts = read_claim(claim, frequencies)
    match = match_claim(parts, context)
    sign = find_sign(parts, match, context, frequencies)
    stems = context.stems(match.sentence) if match.sentence >= 0 else []
    return match, sign, measure(parts, match, context, sentence=stems, sign=sign)


@lru_cache(maxsize=_KEPT)
def _read(chunks: tuple[str, ...]) -> ContextIndex:
    """The index of a context; the last few are kept, as claims are often asked one by one."""
    return ContextIndex(chunks)


class Verifier:
    """Decides claims against one context, which is read once.

    Args:
        chunks: The texts of the context.
        parameters: Those shipped with the package by default.
    """

    def __init__(self, chunks: Sequence[str], parameters: Parameters | None = None) -> None:
        self._context = _read(tuple(chunks))
        self._frequencies, self._model, _ = parameters or load_parameters()

    def decide(self, claim: str) -> Decision:
        """Decide one claim. The confidence is a score, not a calibrated probability."""
        if not self._context.chunk_of:
            return Decision("NOT_ENOUGH_INFO", 1.0, "The context is empty.")
        match, sign, features = examine(claim, self._context, self._frequencies)
        support = round(self._model.support(features), 4)
        sentence = self._context.text(match.sentence)
        if sign is not None:
            chunk = self._context.chunk_of[match.sentence]
            doubt = round(max(1.0 - support, 1.0 - _THRESHOLD), 4)
            reason = _compared(claim, sentence, sign)
            return Decision("CONTRADICTED", doubt, reason, sentence, [chunk])
        sure = round(max(support, 1.0 - support), 4)
        if support < _THRESHOLD:
            reason = _what_is_missing(claim, match, sentence)
            return Decision("NOT_ENOUGH_INFO", sure, reason)
        reason = _found(claim, match, sentence)
        return Decision("SUPPORTED", sure, reason, sentence, match.chunk_ids)


def _found(claim: str, match: Match, sentence: str) -> str:
    closest = f"Closest sentence: {_quoted(sentence)}."
    if not match.missing:
        return closest
    return f"{closest} Not in the context: {_named(claim, match)}."


def _compared(claim: str, sentence: str, sign: Sign) -> str:
    if sign.kind == "negation":
        return f"The claim and the closest sentence differ in negation: {_quoted(sentence)}."
    if sign.kind == "measure":
        claimed = " ".join(_as_written(claim, sign.claimed))
        stated = " ".join(_as_written(sentence, sign.stated))
    else:
        claimed, stated = _phrase(claim, sign.claimed), _phrase(sentence, sign.stated)
    return f"Another {sign.kind}. Claim: {claimed}; closest sentence: {stated}."


def _what_is_missing(claim: str, match: Match, sentence: str) -> str:
    if not read_words(claim).stems:
        return "The claim has no words to compare."
    if not match.missing:
        return (
            "Not supported by wording: the claim's words occur in the context, but not together. "
            f"Closest sentence: {_quoted(sentence)}."
        )
    return f"Not supported by wording: the context does not have {_named(claim, match)}."


def _quoted(sentence: str) -> str:
    text = " ".join(sentence.split())
    return f'"{text}"' if len(text) <= _MOST_QUOTED else f'"{text[: _MOST_QUOTED - 1]}…"'


def _named(claim: str, match: Match) -> str:
    return ", ".join(_as_written(claim, match.missing[:_MOST_NAMED]))


def _phrase(text: str, stems: Sequence[str]) -> str:
    """The words of a text behind some stems; a number with what it counts: "nine working days"."""
    written = _as_written(text, stems)
    words = _SURFACE.findall(text)
    for at, word in enumerate(words):
        if word == written[0] and stems[0][0] == "#":
            follows = itertools.takewhile(_is_content, words[at + 1 : at + 1 + _COUNTED])
            return ", ".join([" ".join([word, *follows]), *written[1:]])
    return ", ".join(written)


def _is_content(word: str) -> bool:
    return all(found not in FUNCTION_WORDS and found[0] != "#" for found in stems_of(word))


def _as_written(text: str, stems: Sequence[str]) -> list[str]:
    """The words of a text behind some stems; where they cannot be told, the stems."""
    forms: dict[str, str] = {}
    for word in _SURFACE.findall(text):
        for found in stems_of(word):
            forms.setdefault(found, word)
    shown = (found if is_pair(found) else forms.get(found, found.lstrip("#")) for found in stems)
    return list(dict.fromkeys(shown))
