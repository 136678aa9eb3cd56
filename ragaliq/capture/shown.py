"""The context of an answer is what the model that wrote it was shown: its prompt says that.

No knowledge of a framework's steps is needed: candidates are all passages that a run's retrievers,
tools, states and inputs held; those whose text stands in the prompt of the call that gave the
answer are its context. `shown` is a pure function over plain values, and works where there is
time: it reads whole prompts.

What counts:
- The prompt of the call whose reply is the answer. Where several replies make the answer up, each
  of their prompts. The prompts of graders, routers and query writers do not: their replies are no
  part of the answer.
- The prompts of earlier calls whose reply stands in such a prompt (refine, sub-questions,
  map-reduce, agents as tools), and so on. The reply itself is never evidence.
- Passages that were cut, by their beginning or by their sentences, and passages that were written
  out otherwise, by their runs of three words.
- This turn's tool messages, whole, where no candidate stands in them; not one that repeats a
  model's reply, or that is the answer.
"""

from __future__ import annotations

import html
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from ragaliq.capture.texts import Message
from ragaliq.core.draft import FoundContext, Passage

__all__ = ["Call", "Candidate", "shown"]

# Letters that a text has at least if finding it elsewhere is to mean anything.
_TELLING = 20
# A passage was cut, not dropped, if this much of it is there.
_CUT_TELLING = 30
# Share of a text's runs of three words that must be found where it was written out otherwise.
_REWRITTEN = 0.7
_ANSWERED = 0.5

_WORDS = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+|(?<=[。！？])")
_CITED = re.compile(r"\[\^?\d+[^\]]{0,20}\]|【[^】]*】")  # which applications add, or take away
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})|\\[nrt\"\\/]")


class Call(NamedTuple):
    """One call of a model.

    Attributes:
        messages: Its prompt.
        reply: What it said; None if it did not end well.
        also: The texts in the arguments of tools it called: structured answers are given so.
        began: When it began, and
        ended: when it ended, as places in the run's order of events.
        is_aside: Whether it works for a retriever; its reply is no answer to anybody.
        step: Its id.
    """

    messages: Sequence[Message]
    reply: str | None
    also: Sequence[str] = ()
    began: int = 0
    ended: int = 0
    is_aside: bool = False
    step: object = None


class Candidate(NamedTuple):
    """A text that may be part of the context.

    Attributes:
        passage: The text.
        kind: `document`; `tool`, all that a tool said; `block`, one of several texts that it said;
            `text`, a string where a context is usual; `loose`, any other string that a step
            returned, which counts only where nothing else is.
        at: When it turned up, as a place in the run's order of events.
    """

    passage: Passage
    kind: str = "document"
    at: int = 0


def words(text: str) -> str:
    """A text without white space, punctuation, markup, case and escapes: its words, spaced."""
    if "\\" in text:
        text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)) if match[1] else " ", text)
    if "&" in text:
        text = html.unescape(text)
    return " ".join(_WORDS.findall(text.casefold()))


def shown(
    calls: Sequence[Call], candidates: Sequence[Candidate], question: str, answer: str
) -> FoundContext | None:
    """The context of an answer, by what its model was shown.

    Args:
        calls: The run's model calls, in the order of their beginnings.
        candidates: What may be context, in the order in which it turned up.
        question: The user's question, which is no context.
        answer: The answer.

    Returns:
        None where that cannot be told: no call gave the answer, or its prompt is not to be seen.
    """
    return _Finding(calls, candidates, question, answer).context()


class _Place(NamedTuple):
    call: int
    at: int


class _Prompt:
    """What one call was shown, as words."""

    def __init__(self, call: Call, norm: Callable[[str], str]) -> None:
        self.call = call
        last = max((i for i, m in enumerate(call.messages) if m.role == "user"), default=-1)
        self.asked = [norm(m.text) for m in call.messages if m.role == "user"]
        self.tools: list[tuple[str, str]] = []
        self.said: list[str] = []
        pieces: list[str] = []
        for position, message in enumerate(call.messages):
            texts = [norm(text) for text in message.texts]
            if message.role == "assistant":
                if position > last:
                    self.said += (*texts, norm(message.text))
            elif message.role != "tool":
                pieces += texts
            elif position > last:
                self.tools += zip(texts, message.texts, strict=True)
                pieces += texts
        self.text = f" {' '.join(pieces)} "


class _Standing:
    """Which texts stand in others, word by word, without comparing each with each.

    Each is filed under the run of up to four words in it that the fewest have.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        runs = {text: set(_runs(text.split())) for text in texts if text}
        counts = Counter(run for held in runs.values() for run in held)
        self._filed: defaultdict[str, list[str]] = defaultdict(list)
        for text, held in runs.items():
            self._filed[min(held, key=lambda run: (counts[run], run))].append(text)

    def inside(self, text: str) -> list[str]:
        """Those that stand in a text, itself left out."""
        split, padded = text.split(), f" {text} "
        runs = {run for size in range(1, _RUN + 1) for run in _runs(split, size)}
        filed = (known for run in runs if run in self._filed for known in self._filed[run])
        return [known for known in filed if known != text and f" {known} " in padded]


_RUN = 4


def _runs(split: Sequence[str], size: int = _RUN) -> Iterator[str]:
    """The runs of so many words in a text; the text itself where it has fewer."""
    size = min(size, len(split))
    return (" ".join(split[at : at + size]) for at in range(len(split) - size + 1))


class _Finding:
    def __init__(
        self, calls: Sequence[Call], candidates: Sequence[Candidate], question: str, answer: str
    ) -> None:
        self._known: dict[str, str] = {}
        self._calls = [call for call in calls if call.reply is not None and not call.is_aside]
        self._candidates = candidates
        self._began = 0
        # Each reply, and when a model first gave it.
        self._ended: dict[str, int] = {}
        for call in self._calls:
            reply = self._norm(call.reply or "")
            if reply:
                self._ended[reply] = min(call.ended, self._ended.get(reply, call.ended))
        self._replies = _Standing(self._ended)
        self._question = self._norm(question)
        self._answer = self._norm(_CITED.sub(" ", answer))

    def _norm(self, text: str) -> str:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = words(text)
        return known

    def context(self) -> FoundContext | None:
        prompts = self._prompts()
        self._began = max((prompt.call.began for prompt in prompts), default=0)
        if not any(prompt.text.strip() for prompt in prompts):
            return None
        found: dict[str, tuple[_Place, Passage]] = {}
        self._whole(prompts, found)
        self._in_part(prompts, found)
        self._tool_messages(prompts, found)
        self._texts(prompts, found, "text")
        if not found:
            self._texts(prompts, found, "loose")
        if not found:
            self._rewritten(prompts, found)
        if found:
            # What begins at one place: the longer before what it holds.
            in_order = sorted(found.items(), key=lambda each: (each[1][0], -len(each[0])))
            return FoundContext([passage for _, (_, passage) in in_order], "prompt")
        return FoundContext((), "prompt", self._missing(prompts))

    def _missing(self, prompts: Sequence[_Prompt]) -> str:
        if any(prompt.tools for prompt in prompts):
            return "only_replies"
        strong = [c for c in self._candidates if c.kind != "loose" and c.passage.text.strip()]
        return "not_in_prompt" if strong else "nothing_retrieved"

    # Which calls

    def _prompts(self) -> list[_Prompt]:
        """The prompts that count, the earliest first."""
        todo = self._answering()
        used: dict[int, _Prompt] = {}
        while todo:
            call = todo.pop()
            if id(call) not in used:
                used[id(call)] = prompt = _Prompt(call, self._norm)
                todo += [each for each in self._calls if self._feeds(each, prompt)]
        return sorted(used.values(), key=lambda prompt: prompt.call.began)

    def _feeds(self, call: Call, prompt: _Prompt) -> bool:
        """Whether the reply of an earlier call stands in a prompt."""
        reply = self._norm(call.reply or "")
        if not reply or call is prompt.call or call.ended > prompt.call.began:
            return False
        if any(reply == text for text, _ in prompt.tools):
            return True
        if len(reply) < _TELLING or reply == self._question:
            return False
        return f" {reply} " in prompt.text or reply in prompt.said

    def _answering(self) -> list[Call]:
        """The calls whose replies are the answer, or make it up."""
        answer = self._answer
        if not answer:
            return []
        replies = [(self._said(call), call) for call in self._calls]
        for fits in (
            lambda text: text == answer,
            # A field of a structured reply, or a reply with more around it.
            lambda text: f" {answer} " in f" {text} ",
        ):
            fitting = [call for texts, call in replies if any(map(fits, texts))]
            if fitting:
                return fitting[-1:]
        parts = self._parts(replies)
        if parts:
            return parts
        shares = [(_share(answer, " ".join(texts)), call.ended, call) for texts, call in replies]
        best = max(shares, key=lambda each: each[:2], default=None)
        return [best[2]] if best is not None and best[0] >= _ANSWERED else []

    def _parts(self, replies: Sequence[tuple[list[str], Call]]) -> list[Call]:
        """Several replies that stand in the answer; of equal ones as many as stand there."""
        answer, telling = f" {self._answer} ", min(_TELLING, len(self._answer) // 2)
        parts: dict[str, list[Call]] = {}
        for texts, call in replies:
            text = texts[0]
            if len(text) >= telling and text and f" {text} " in answer:
                parts.setdefault(text, []).append(call)
        return [
            call
            for text, calls in parts.items()
            if not any(text != other and f" {text} " in f" {other} " for other in parts)
            for call in calls[-_count(text, self._answer) :]
        ]

    def _said(self, call: Call) -> list[str]:
        return [self._norm(_CITED.sub(" ", text)) for text in (call.reply or "", *call.also)]

    def _repeats_reply(self, text: str, before: int, share: float = 0.5) -> bool:
        """Whether a text is little more than what models had said before it turned up."""
        if self._ended.get(text, before) < before:
            return True
        left = text
        said = [r for r in self._replies.inside(text) if len(r) >= _TELLING]
        for reply in sorted(said, key=self._ended.__getitem__):
            if self._ended[reply] < before:
                left = left.replace(reply, "")
        return len(left.strip()) <= (1 - share) * len(text)

    # Which passages

    def _of_kind(self, *kinds: str) -> Iterator[tuple[str, Candidate]]:
        """The candidates that may be evidence, each text once, in its fullest form."""
        fullest: dict[str, Candidate] = {}
        for candidate in self._candidates:
            if candidate.kind not in kinds:
                continue
            text = self._norm(candidate.passage.text) or candidate.passage.text.strip()
            before = fullest.get(text)
            if text and (before is None or _fullness(candidate) >= _fullness(before)):
                fullest[text] = candidate._replace(at=candidate.at if before is None else before.at)
        for text, candidate in fullest.items():
            # A found document may well hold a query that a model wrote.
            share = 0.8 if candidate.kind == "document" else 0.5
            # What stands in a prompt was there before it.
            if not self._repeats_reply(text, min(candidate.at, self._began), share):
                yield text, candidate

    def _whole(self, prompts: Sequence[_Prompt], found: dict[str, tuple[_Place, Passage]]) -> None:
        placed = [
            (text, candidate, place)
            for text, candidate in self._of_kind("document", "tool", "block")
            if (place := _place_of(text, prompts)) is not None
        ]
        standing = _Standing(text for text, _, _ in placed)
        for text, candidate, place in placed:
            if candidate.kind != "document" and (
                self._is_the_answer(candidate) or not found.keys().isdisjoint(standing.inside(text))
            ):
                continue
            found[text] = (place, candidate.passage)
        for text in _contained(found, prompts):
            del found[text]

    def _in_part(
        self, prompts: Sequence[_Prompt], found: dict[str, tuple[_Place, Passage]]
    ) -> None:
        whole = set(found)
        for text, candidate in self._of_kind("document"):
            if text in whole:
                continue
            part = _part_of(candidate.passage.text, prompts, whole)
            if part is None:
                continue
            place, cut = part
            known = self._norm(cut)
            if known not in found and not any(f" {known} " in f" {other} " for other in whole):
                found[known] = (place, candidate.passage._replace(text=cut))

    def _is_the_answer(self, candidate: Candidate) -> bool:
        """Whether a tool gave the answer itself, as another agent does: that supports nothing."""
        return candidate.kind == "tool" and self._norm(candidate.passage.text) == self._answer

    def _tool_messages(
        self, prompts: Sequence[_Prompt], found: dict[str, tuple[_Place, Passage]]
    ) -> None:
        gave_answer = any(map(self._is_the_answer, self._candidates))
        standing = _Standing({*found, *(text for p in prompts for text, _ in p.tools)})
        for prompt in prompts:
            for text, original in prompt.tools:
                if (
                    text
                    and not (gave_answer and text == self._answer)
                    and text not in found
                    and found.keys().isdisjoint(standing.inside(text))
                    and not self._repeats_reply(text, prompt.call.began)
                ):
                    place = _place_of(text, [prompt])
                    found[text] = (place or _Place(prompt.call.began, 0), Passage(original))

    def _texts(
        self, prompts: Sequence[_Prompt], found: dict[str, tuple[_Place, Passage]], kind: str
    ) -> None:
        """Strings without a document to them, say of a search that plain code made."""
        asked = {text for prompt in prompts for text in prompt.asked}
        taken: dict[str, tuple[_Place, Passage]] = {}
        for text, candidate in self._of_kind(kind):
            is_question = text in {self._question, self._answer} or text in asked
            if is_question or _holds(text, found) or _held(text, found):
                continue
            if kind == "loose" and (
                len(text) <= _CUT_TELLING or (self._question and self._question in text)
            ):
                continue
            place = _place_of(text, prompts)
            if place is not None:
                taken[text] = (place, candidate.passage)
        found.update(
            {
                text: placed
                for text, placed in taken.items()
                if not any(text != other and f" {text} " in f" {other} " for other in taken)
            }
        )

    def _rewritten(
        self, prompts: Sequence[_Prompt], found: dict[str, tuple[_Place, Passage]]
    ) -> None:
        """Documents that were written out otherwise: a table's rows, fields with their names."""
        grams = [(prompt, _grams(prompt.text)) for prompt in prompts]
        for text, candidate in self._of_kind("document"):
            own = _grams(text)
            for prompt, held in grams:
                if len(own) >= 5 and len(own & held) >= _REWRITTEN * len(own):
                    found[text] = (_Place(prompt.call.began, len(prompt.text)), candidate.passage)
                    break


def _fullness(candidate: Candidate) -> tuple[bool, bool, bool, bool]:
    passage = candidate.passage
    return (
        candidate.kind == "document",
        passage.id is not None,
        passage.score is not None,
        bool(passage.metadata),
    )


def _holds(text: str, found: Collection[str]) -> bool:
    """Whether a found passage stands in a text."""
    return any(f" {known} " in f" {text} " for known in found)


def _held(text: str, found: Collection[str]) -> bool:
    """Whether a text stands in a found passage."""
    return any(f" {text} " in f" {known} " for known in found)


def _place_of(text: str, prompts: Iterable[_Prompt]) -> _Place | None:
    """Where a text stands in the prompts, first."""
    # Texts that write no spaces between words have no boundaries to look for.
    sought = f" {text} " if text.isascii() or len(text) < 8 else text
    for prompt in prompts:
        at = prompt.text.find(sought)
        if at >= 0:
            return _Place(prompt.call.began, at)
    return None


def _contained(found: Collection[str], prompts: Sequence[_Prompt]) -> list[str]:
    """Passages that are shown only as a part of longer ones, as the children of a parent are."""
    inner = []
    standing, holders = _Standing(found), defaultdict[str, list[str]](list)
    for other in found:
        for text in standing.inside(other):
            holders[text].append(other)
    for text in found:
        around = holders[text]
        if around:
            times = sum(_count(text, prompt.text) for prompt in prompts)
            within = sum(
                _count(text, f" {other} ") * sum(_count(other, prompt.text) for prompt in prompts)
                for other in around
            )
            if times <= within:
                inner.append(text)
    return inner


def _count(text: str, within: str) -> int:
    # Neighbours share the space between them, so both are counted without it.
    return within.count(text)


def _part_of(
    original: str, prompts: Sequence[_Prompt], whole: Collection[str]
) -> tuple[_Place, str] | None:
    """The part of a passage that stands in the prompts: its sentences, or its beginning.

    What a whole passage there says as well, as where pieces overlap, is no part of this one.
    """
    sentences = [part for part in _SENTENCE_END.split(original) if part and part.strip()]
    kept: list[tuple[_Place, str]] = []
    for sentence in sentences if len(sentences) > 1 else ():
        text = words(sentence)
        place = _place_of(text, prompts) if len(text) >= _TELLING else None
        if place is not None and not _held(text, whole):
            kept.append((place, sentence.strip()))
    beginning = _beginning(original, prompts)
    if beginning is not None and len(beginning[1]) >= sum(len(text) for _, text in kept):
        return beginning
    return (min(place for place, _ in kept), " ".join(text for _, text in kept)) if kept else None


def _beginning(original: str, prompts: Sequence[_Prompt]) -> tuple[_Place, str] | None:
    """The longest beginning of a passage that stands in a prompt, down to whole words."""
    ends = [match.end() for match in _WORDS.finditer(original)]
    low, high = 0, len(ends)
    best: tuple[_Place, str] | None = None
    while low < high:  # if a beginning stands there, every shorter one does
        middle = (low + high + 1) // 2
        cut = original[: ends[middle - 1]]
        place = _place_of(words(cut), prompts)
        if place is None:
            high = middle - 1
        else:
            low, best = middle, (place, cut)
    return best if best is not None and len(words(best[1])) >= _CUT_TELLING else None


def _grams(text: str) -> set[tuple[str, ...]]:
    held = text.split()
    return {tuple(held[i : i + 3]) for i in range(len(held) - 2)}


def _share(text: str, within: str) -> float:
    """The share of a text's runs of three words that another has."""
    own = _grams(text)
    return len(own & _grams(within)) / len(own) if own else 0.0
