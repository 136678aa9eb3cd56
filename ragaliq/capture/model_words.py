"""Words of the models of a run and its conversation, which are never evidence.

A reply may be passed on whole or in part, in a tool's JSON, in a sentence around it, as a document.
Short replies are found whole. Of longer ones, sequences of a few words are found that were not in
the model's own prompt: words that it copies from a document stay the document's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from ragaliq.capture.calls import Call, written_arguments
from ragaliq.capture.phrases import (
    MarkedText,
    Owner,
    PhraseIndex,
    is_telling,
    normalize,
    without_labels,
)
from ragaliq.capture.transcripts import ASSISTANT, ASSISTANT_SAYS, is_turn, mark_transcript

# Words of a sequence that is searched for, and characters in scripts without spaces.
_SEQUENCE, _SIGNS = 5, 12
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
# Least words of a tool's argument that is cut out of the tool's result: shorter ones may be a
# document's words as well.
_LONG_QUERY = 8
_MOST_PIECES = 500  # short sentences and lines of a reply: each is searched in later prompts


class _Utterance(NamedTuple):
    """One time that a model wrote some words; `ModelWords` keeps it by these words.

    Attributes:
        ended: Position of the reply's end in the run's order of events: only later texts repeat it.
        for_tool: Normalized result of the tool that the model ran inside. If it equals these words,
            the tool returned the model's reply, which is removed however short it is.
        is_query: Whether the words are a query or another argument of a tool. A document that was
            found with a query may contain its words, so that short ones are not removed there.
    """

    ended: int
    for_tool: str = ""
    is_query: bool = False


class ModelWords:
    """Index of what models wrote in a run and its conversation: replies and tools' arguments.

    The search for evidence marks these words in prompts and passages that came later, because a
    model's words do not support an answer.

    Args:
        calls: The run's calls of models, in the order of their beginnings.
        past: Turns before the question, normalized, each with its role.
        queries: Queries of retrievers, normalized.
        normalized: Normalizes a text, and remembers it.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        past: Iterable[tuple[str, str]],
        queries: frozenset[str],
        normalized: Callable[[str], str],
    ) -> None:
        self._past = {words: role for role, words in past}
        self._replies: dict[str, list[_Utterance]] = {}
        # All arguments of one call, with when it ended.
        self._given: list[tuple[int, str]] = []
        # Short sentences and lines of long replies, which are passed on without the others.
        self._pieces_of: dict[str, list[str]] = {}
        last = max((call.began for call in calls), default=0)
        for call in calls:
            if call.is_for_retriever or call.reply is None or call.ended > last:
                continue  # no later prompt can contain it
            tool = normalized(call.for_tool)
            reply = normalized(call.reply)
            self._note(reply, _Utterance(call.ended, tool, is_query=reply in queries))
            for text in call.tool_arguments:
                self._note(normalized(text), _Utterance(call.ended, is_query=True))
            self._pieces_of[reply] = [*islice(_pieces(call.reply, normalized), _MOST_PIECES)]
            if given := call.tool_arguments or written_arguments(call.reply):
                self._given.append((call.ended, " ".join(map(normalized, given))))
        for reply, (first, *_) in list(self._replies.items()):
            for words in queries - self._replies.keys():
                if f" {words} " in f" {reply} ":  # one of several that the model listed
                    self._note(words, first._replace(is_query=True))
        self._phrases = PhraseIndex(
            words
            for words in (*self._replies, *self._past)
            if is_telling(words) and (words in self._past or not _is_long(words))
        )
        # Replies of a word or two: they stand alone where they are passed on. Numbers are grades.
        self._short = PhraseIndex(
            words for words in self._replies if not is_telling(words) and not words.isdigit()
        )
        # Short turns are a message, or a line, of their own.
        self._turns = PhraseIndex(
            words for words, role in self._past.items() if role and not is_telling(words)
        )
        self._arguments = PhraseIndex(
            words
            for words, each in self._replies.items()
            if is_telling(words) and all(one.is_query for one in each)
        )
        self._given_back: dict[str, int] = {}
        self._pieces: dict[str, _Utterance] = {}
        self._known_pieces = PhraseIndex(chain.from_iterable(self._pieces_of.values()))
        self._sequences: dict[str, _Utterance] = {}

    def _note(self, words: str, utterance: _Utterance) -> None:
        if words:
            self._replies.setdefault(words, []).append(utterance)

    @property
    def is_empty(self) -> bool:
        """True if no reply could have been passed on."""
        return not (self._replies or self._past)

    def has_said(self, words: str) -> bool:
        """True if a model, or the conversation, said exactly this."""
        return words in self._replies or words in self._past

    def wrote(self, words: str, at: int) -> bool:
        """True if a model had said exactly this before, also as a tool's argument."""
        return any(each.ended <= at for each in self._replies.get(words, ()))

    def gave_back(self, words: str, at: int) -> None:
        """Note a passage without other words than models': prompts may have it in a longer text."""
        if is_telling(words):
            self._given_back.setdefault(words, at)

    def learn(self, texts: Iterable[tuple[str, int]]) -> None:
        """Separate models' own words from words of their prompts.

        Args:
            texts: What was shown or found, normalized, with when that was.
        """
        replies = [
            (utterance.ended, words, utterance)
            for words, each in self._replies.items()
            if _is_long(words)
            for utterance in each
        ]
        if not replies:
            return
        shown, seen = set[str](), set[str]()
        # In order of time; what was shown at one moment goes first.
        waiting = sorted(texts, key=lambda each: each[1], reverse=True)
        for ended, words, utterance in sorted(replies, key=lambda each: each[0]):
            while waiting and waiting[-1][1] <= ended:
                text, _ = waiting.pop()
                seen.update(self._known_pieces.inside(text))
                shown.update(each for each in _sequences(text) if each not in self._sequences)
            for each in _sequences(words):
                if each not in shown:
                    self._sequences.setdefault(each, utterance)
            for piece in self._pieces_of.get(words, ()):
                if piece not in seen:
                    self._pieces.setdefault(piece, utterance)

    def mark(self, text: MarkedText, at: int, *, is_found: bool) -> list[str]:
        """Mark earlier words of models in a text, without words that have an owner.

        Args:
            text: The text.
            at: Position of its event.
            is_found: Whether it was found, or is a tool result, in which short queries count.

        Returns:
            The marked words, normalized.
        """
        marked = mark_transcript(text, is_sure=False)
        if self.is_empty:
            return marked
        is_whole = self._is_passed_on(text.words, at) or (is_found and self._is_given(text, at))
        whole = [text.words] if is_whole else []
        whole += [words for words, since in self._given_back.items() if since <= at]
        phrases = (
            words
            for words in self._phrases.inside(text.words)
            if self._is_repeated(words, text.words, at, is_found=is_found)
        )
        for words in (*whole, *phrases):
            # Of a whole conversation the lines of others are evidence.
            if _take(text, words, partly=self._past.get(words) != ""):
                marked.append(words)
        if not is_found:
            pieces = (w for w in self._known_pieces.inside(text.words) if w in self._pieces)
            marked += [w for w in pieces if self._pieces[w].ended <= at and _take(text, w)]
        turns = () if is_found else self._turns.inside(text.words)
        marked += [words for words in turns if _take(text, words, is_turn)]
        # Of a word or two; and what a tool was given, which it may say again as a note read back.
        alone = [w for w in self._short.inside(text.words) if self._is_reply(w, at)]
        if is_found:
            alone += [w for w in self._arguments.inside(text.words) if self.wrote(w, at)]
        marked += [words for words in alone if _take(text, words, MarkedText.stands_alone)]
        return marked + self._mark_sequences(text, at, is_found=is_found)

    def _is_reply(self, words: str, at: int) -> bool:
        return any(each.ended <= at and not each.is_query for each in self._replies[words])

    def mark_whole(self, text: MarkedText, at: int) -> None:
        """Mark long replies that are a whole text, and a remembered message."""
        if (label := ASSISTANT_SAYS.fullmatch(text.text.strip())) and label["model"]:
            _take(text, normalize(label["words"]))
        for words, each in self._replies.items():
            if _is_long(words) and f" {words} " in f" {text.words} ":
                is_own = any(sequence in self._sequences for sequence in _sequences(words))
                if is_own and any(one.ended <= at and not one.is_query for one in each):
                    for place in text.places(words):
                        text.mark(place, Owner.MODEL)

    def _mark_sequences(self, text: MarkedText, at: int, *, is_found: bool) -> list[str]:
        if not self._sequences:
            return []
        split, marked, end = text.words.split(), list[str](), 0
        for first, last in _places(split):
            utterance = self._sequences.get(" ".join(split[first:last]))
            if utterance is None or utterance.ended > at:
                continue
            if utterance.is_query and is_found and not self._goes_on(split, first, at):
                continue
            text.mark_free(slice(max(first, end), last), Owner.MODEL)
            if first > end or not marked:
                marked.append(" ".join(split[first:last]))
            else:
                marked[-1] += "".join(f" {word}" for word in split[end:last])
            end = last
        return marked

    def _goes_on(self, split: Sequence[str], first: int, at: int) -> bool:
        """True if a query continues there at length."""
        held = split[max(0, first - _LONG_QUERY) : first + _LONG_QUERY]
        found = (self._sequences.get(" ".join(held[a:b])) for a, b in _places(held))
        known = sum(each is not None and each.ended <= at for each in found)
        return known > _LONG_QUERY - _SEQUENCE

    def _is_passed_on(self, words: str, at: int) -> bool:
        """True if a text is a reply, even of one word, that a tool or a step passes on, or cuts."""
        if (
            is_telling(words)
            and self._is_own(words.rpartition(" ")[0])
            and any(
                one.for_tool == words and one.ended <= at
                for reply, each in self._replies.items()
                if reply != words and reply.startswith(words)
                for one in each
            )
        ):
            return True
        return self._is_own(words) and any(
            each.ended <= at
            and (each.for_tool == words or (is_telling(words) and not each.is_query))
            for each in self._replies.get(words, ())
        )

    def _is_own(self, words: str) -> bool:
        """True if a model's words are not all from what it was shown."""
        return not _is_long(words) or any(each in self._sequences for each in _sequences(words))

    def _is_given(self, text: MarkedText, at: int) -> bool:
        """True if a tool's result has no other words than models gave to tools.

        Of the call before it, in any order, as in a table; of earlier ones, in theirs, as in a file
        that is read back: a long plan has the words of many a fact.
        """
        if not (self._given and is_telling(text.words)):
            return False
        words = without_labels(text.text)
        *earlier, last = sorted(each for each in self._given if each[0] <= at) or [(0, "")]
        return bool(words) and (
            frozenset(words.split()) <= frozenset(last[1].split())
            or any(f" {words} " in f" {given} " for _, given in earlier)
        )

    def _is_repeated(self, words: str, text: str, at: int, *, is_found: bool) -> bool:
        if words in self._past:
            # An earlier answer may be a document's sentence; a conversation that was remembered
            # has both sides, or says whose words they are.
            if not is_found:
                return True
            if self._past[words] != "assistant":
                return False
            inside = (each for each in self._phrases.inside(text) if each in self._past)
            label = text[: text.find(words)].rstrip().rpartition(" ")[2]
            return label in ASSISTANT or "user" in {self._past[each] for each in inside}
        return any(
            each.ended <= at and not (each.is_query and is_found) for each in self._replies[words]
        )


def _take(
    text: MarkedText,
    words: str,
    counts: Callable[[MarkedText, slice], bool] = lambda _, __: True,
    *,
    partly: bool = False,
) -> bool:
    """Mark words without an owner.

    Args:
        text: The text.
        words: Normalized.
        counts: Tells at which places to mark them; by default at all.
        partly: Whether to mark them also where a document has some of them.
    """
    fits = text.has_free if partly else text.is_free
    places = [place for place in text.places(words) if fits(place) and counts(text, place)]
    for place in places:
        text.mark_free(place, Owner.MODEL)
    return bool(places)


def _pieces(reply: str, normalized: Callable[[str], str]) -> Iterator[str]:
    """Sentences and lines of a reply that are too short for a sequence, and its first words."""
    for piece in _SENTENCE_END.split(reply):
        words = normalized(piece or "")
        if is_telling(words) and not _is_long(words):
            yield words
    beginning = " ".join(normalized(reply).split()[: _SEQUENCE - 1])
    if is_telling(beginning):
        yield beginning


def _is_long(words: str) -> bool:
    return next(_sequences(words), None) is not None


def _sequences(words: str) -> Iterator[str]:
    split = words.split()
    return (" ".join(split[first:last]) for first, last in _places(split))


def _places(split: Sequence[str]) -> Iterator[tuple[int, int]]:
    """First and last position of each sequence of words; longer ones in unspaced scripts."""
    for first in range(len(split) - _SEQUENCE + 1):
        last = first + _SEQUENCE
        if len(split[first]) == 1 and not split[first].isascii():
            last = first + _SIGNS
        if last <= len(split):
            yield first, last
