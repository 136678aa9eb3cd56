"""Evidence of an answer: everything in its model's prompts except models' words and the question.

This needs no knowledge of a framework's steps. From the prompts that led to the answer
(`ragaliq.capture.calls`), it removes the assistant's messages, earlier words of models of this run
or conversation, and the question. The rest is evidence:

- Passages of retrievers, tools, states and inputs that occur there are chunks, with id, metadata
  and score, in order of their position. Of a truncated passage, the part in the prompt counts.
- A tool result of this turn is a chunk, unless a known passage occurs in it, or all of its words
  are from the tool's arguments.
- A retrieved passage in a message that the application wrote as the assistant's is a chunk.
- The rest is one text, with the passages in their places: text next to a passage, such as a date
  or a price, belongs to it. Instructions are in it too, and support little.

If no search, tool or application text is known, that text may be instructions alone; `missing` then
has the reason.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple

from ragaliq.capture.calls import Call, calls_behind
from ragaliq.capture.conversation import messages_before, parts_of, turns_of_messages
from ragaliq.capture.model_words import ModelWords
from ragaliq.capture.phrases import (
    MarkedText,
    Owner,
    PhraseIndex,
    is_telling,
    normalize,
    readable,
    says_something,
)
from ragaliq.capture.texts import Message
from ragaliq.capture.transcripts import mark_questions, mark_transcript
from ragaliq.core.passages import Passage
from ragaliq.core.test_case import Turn

# Words that a text of the application has at least if it makes a prompt more than instructions.
_LEAST_OF_APPLICATION = 5
# Words of the beginning, or of a sentence, of a passage that was cut.
_LEAST_PART = 4
# Truncated documents that are looked for sentence by sentence; with more it takes long.
_MOST_TRUNCATED = 200
# Least share of a document's words in a prompt that states it in another form.
_REWRITTEN = 0.6
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+|(?<=[。！？])")
_WORDS = re.compile(r"[^\W_]+")


class FoundContext(NamedTuple):
    """Context of an answer, and its source.

    Attributes:
        passages: The passages in rank order.
        source: Their source, such as `prompt`, `retriever` or `tool`.
        missing: Reason why there are none.
        history: The conversation before the question, if known.
        prompt: Texts of the prompts that say more than passages do, such as instructions, without
            models' words and the question. Passages in them stay in their places.
        left_out: Passages that were found but are in no prompt.
        cut: Earlier words of models, which were removed from the prompts.
    """

    passages: Sequence[Passage]
    source: str = ""
    missing: str = ""
    history: Sequence[Turn] = ()
    prompt: str = ""
    left_out: Sequence[Passage] = ()
    cut: Sequence[str] = ()


class Candidate(NamedTuple):
    """A passage that may be a chunk of the context.

    Attributes:
        passage: The passage.
        at: Position of its event in the run's order of events.
        is_retrieved: Whether a retriever found it, rather than a tool or a step.
        is_all: Whether it is a whole tool result, which may contain documents.
    """

    passage: Passage
    at: int = 0
    is_retrieved: bool = False
    is_all: bool = False


def context_in_prompts(
    calls: Sequence[Call],
    candidates: Sequence[Candidate],
    question: str,
    answer: str,
    *,
    queries: Iterable[str] = (),
    earlier: Sequence[Turn] = (),
    transcripts: Iterable[str] = (),
    files: Sequence[str] = (),
    texts: Iterable[str] = (),
    said_before: Iterable[str] = (),
    is_conversation: bool = False,
) -> FoundContext | None:
    """Find the context of an answer in its model's prompts.

    Args:
        calls: The run's calls of models, in the order of their beginnings.
        candidates: Passages that may be chunks, in the order in which they turned up.
        question: The user's question.
        answer: The answer.
        queries: Queries of retrievers.
        earlier: The conversation before the question, as the application keeps it.
        transcripts: Whole conversations as texts.
        files: Texts that came with the question.
        texts: Texts of the application that were given to steps, or returned by them.
        said_before: Replies of models in earlier runs of the conversation.
        is_conversation: Whether messages before the question are earlier turns, not examples.

    Returns:
        None if no call gave the answer, or its prompt is not known.
    """
    asked = frozenset(map(normalize, queries))
    normalized = cache(normalize)  # agents are shown a text again with each call
    behind = calls_behind(calls, answer, asked, normalized)
    if not any(message.text.strip() for call in behind for message in call.messages):
        return None
    before = messages_before(behind[0].messages, question, files=files, is_prompt=True)
    is_conversation = is_conversation or any(message.role == "tool" for message in before)
    in_prompt = turns_of_messages(before) if is_conversation or earlier else []
    search = _PromptSearch(
        calls,
        candidates,
        normalized,
        question=question,
        queries=asked,
        conversation=[
            *((turn.role, turn.text) for turn in (*earlier, *in_prompt)),
            *(("", text) for text in transcripts),
            *(("assistant", text) for text in said_before),
        ],
    )
    search.read(sorted(behind, key=lambda call: call.began))
    # Earlier turns in no prompt are ignored; turns of the prompt have tool results as well.
    shown = [turn for turn in earlier if search.is_shown(turn.text)]
    turns = in_prompt if len(in_prompt) >= len(shown) else shown
    return search.found(turns, [*files, *texts])


class _Document(NamedTuple):
    """A candidate that is looked for in prompts, unless all of it is a model's words.

    Attributes:
        candidate: The candidate.
        marked: Its text with earlier words of models marked, which the chunk lacks; None
            if it has none.
    """

    candidate: Candidate
    marked: MarkedText | None


class _Place(NamedTuple):
    """Position in the prompts: the numbers of call, message, text and word."""

    call: int
    message: int
    text: int
    word: int


class _PromptText(NamedTuple):
    """A text of a prompt in which documents are looked for.

    Attributes:
        text: The text, with the owners of its words.
        place: Its position.
        is_source: Whether it is a tool result, or a document for the model to cite: it is a chunk
            itself if neither a known document nor a model's words occur in it.
    """

    text: MarkedText
    place: _Place
    is_source: bool


class _PromptSearch:
    """One search of a run's prompts for the context of an answer."""

    def __init__(
        self,
        calls: Sequence[Call],
        candidates: Sequence[Candidate],
        normalized: Callable[[str], str],
        *,
        question: str,
        queries: frozenset[str],
        conversation: Sequence[tuple[str, str]],
    ) -> None:
        self._normalize = normalized
        self._as_asked = question
        self._question = self._normalize(question)
        self._asked = [self._normalize(part) for part in parts_of(question)]
        past = [(role, self._normalize(text)) for role, text in conversation]
        # When each text was first shown to a model: what models said before may be in it.
        self._first_shown: dict[str, int] = {}
        for call in calls:
            for message in call.messages:
                for text in (*message.texts, *message.documents):
                    self._first_shown.setdefault(text, call.began)
        self._models = ModelWords(
            calls,
            [(role, words) for role, words in past if words and words != self._question],
            queries,
            normalized,
        )
        self._models.learn(
            [
                *((self._normalize(text), at) for text, at in self._first_shown.items()),
                *((self._normalize(c.passage.text), c.at) for c in candidates if c.is_retrieved),
            ]
        )
        self._documents: dict[str, _Document] = {}
        self._saw_reply = False
        # A catalogue of questions may hold the user's own, with its answer.
        self._asks_itself = False
        self._cut: dict[str, None] = {}
        self._keep(candidates)
        self._known = PhraseIndex([*self._documents, self._question])
        for words, document in list(self._documents.items()):
            if document.candidate.is_all and any(
                each in self._documents and each != words for each in self._known.inside(words)
            ):
                del self._documents[words]
        self._texts: list[_PromptText] = []
        self._found: dict[str, tuple[_Place, Passage]] = {}

    def _keep(self, candidates: Sequence[Candidate]) -> None:
        """Keep each candidate that may be evidence, once, in its fullest form."""
        rank: dict[str, tuple[bool, ...]] = {}
        for candidate in candidates:
            passage = candidate.passage
            words = self._normalize(passage.shown_as or passage.text)
            if not words or words == self._question:
                self._asks_itself = self._asks_itself or bool(words)
                continue
            has = passage.id is not None, passage.score is not None, bool(passage.metadata)
            before = self._documents.get(words)
            if before is not None:
                if has >= rank[words]:
                    first = before.candidate  # what was found is given to the next step
                    self._documents[words] = before._replace(
                        candidate=candidate._replace(at=first.at, is_retrieved=first.is_retrieved)
                    )
                    rank[words] = has
                continue
            if candidate.is_all:
                passage = passage._replace(text=readable(passage.text))
            each = candidate._replace(passage=passage)
            marked = self._marked(each)
            if marked is not None and not says_something(marked.without(Owner.MODEL)):
                self._saw_reply = True
                self._cut.setdefault(passage.text)
                self._models.gave_back(words, candidate.at)
                continue
            if marked is not None and each.is_all:
                continue  # the rest of it is not a separate passage
            rank[words] = has
            self._documents[words] = _Document(each, marked)

    def _marked(self, candidate: Candidate) -> MarkedText | None:
        """Text of a candidate with earlier words of models marked; None if it has none."""
        if candidate.passage.shown_as:
            return None
        marked = MarkedText(candidate.passage.text)
        if candidate.is_retrieved:
            # A document that was looked for may hold a model's query, or say much the same as a
            # model; an engine of its own may have answered.
            self._models.mark_whole(marked, candidate.at)
        else:
            self._models.mark(marked, candidate.at, is_found=True)
            if self._models.wrote(marked.words, candidate.at):
                marked.mark(slice(0, len(marked.owners)), Owner.MODEL)
        return marked if Owner.MODEL in marked.owners else None

    # Prompts

    def is_shown(self, text: str) -> bool:
        """True if a text occurs in a prompt of the run."""
        words = f" {self._normalize(text)} "
        return any(words in f" {self._normalize(each)} " for each in self._first_shown)

    def read(self, calls: Sequence[Call]) -> None:
        """Read the prompts that led to the answer, the earliest first."""
        seen: set[str] = set()
        lent: dict[str, tuple[Message, _Place, int]] = {}
        for order, call in enumerate(calls):
            turn = len(messages_before(call.messages, self._as_asked, is_prompt=True))
            # The assistant's messages from there to this turn are earlier answers.
            roles = [message.role for message in call.messages[:turn]]
            answered = roles.index("user") if "user" in roles else turn
            for number, message in enumerate(call.messages):
                is_tools = message.role == "tool"
                if message.role == "assistant" and not answered <= number < turn:
                    place = _Place(order, number, 0, 0)
                    lent.setdefault(message.text, (message, place, call.began))
                if message.role in {"assistant", "note"} or (is_tools and number < turn):
                    continue
                if len(message.texts) > 1 and self._normalize(message.text) == self._question:
                    continue  # in several blocks
                for part, text in enumerate((*message.texts, *message.documents)):
                    if text in seen:  # agents are shown a text again with each call
                        continue
                    seen.add(text)
                    is_source = is_tools or text in message.documents
                    shown = _PromptText(MarkedText(text), _Place(order, number, part, 0), is_source)
                    if shown.text.words:
                        self._mark(shown, self._first_shown[text])
                        self._texts.append(shown)
        for message, place, at in lent.values():
            self._find_lent(message, place, at)
        self._find_truncated()

    def _find_lent(self, message: Message, place: _Place, at: int) -> None:
        """Find documents in a message that the application wrote in the assistant's name."""
        if self._models.has_said(self._normalize(message.text)):
            return
        for text in map(MarkedText, message.texts):
            for words, letters in self._known.find(text.words).items():
                held = self._documents.get(words)
                is_new = held is not None and held.candidate.is_retrieved and held.candidate.at < at
                if is_new and is_telling(words) and words not in self._found:
                    where = text.place(letters[0], words)
                    self._note(words, _PromptText(text, place, is_source=False), where)

    def _mark(self, shown: _PromptText, at: int) -> None:
        """Assign owners to the words of a prompt's text."""
        text = shown.text
        # A document that an earlier reply quotes is not shown there.
        transcript = [] if shown.is_source else mark_transcript(text, is_sure=True)
        for words, letters in self._known.find(text.words).items():
            for place in (text.place(at, words) for at in letters if words in self._documents):
                # Neighbours share what overlaps.
                if Owner.NOBODY in text.owners[place]:
                    text.mark(place, Owner.DOCUMENT)
                    self._note(words, shown, place)
        for cut in (*transcript, *self._models.mark(text, at, is_found=shown.is_source)):
            self._saw_reply = True
            self._cut.setdefault(cut)
        is_whole = f" {self._question} " in f" {text.words} "
        for asked in [self._question] if is_whole else self._asked:
            is_sure = is_telling(asked)
            for place in text.places(asked):
                if text.is_free(place) and (is_sure or text.stands_alone(place)):
                    text.mark(place, Owner.QUESTION)
        if not shown.is_source:
            mark_questions(text)

    def _note(self, words: str, shown: _PromptText, place: slice) -> None:
        """Record the place of a document, without words of models in it."""
        candidate, marked = self._documents[words]
        passage = candidate.passage
        if marked is not None:
            passage = passage._replace(text=marked.without(Owner.MODEL))
            owners = shown.text.owners
            for offset, owner in enumerate(marked.owners):
                if owner == Owner.MODEL:
                    owners[place.start + offset] = Owner.MODEL
            self._saw_reply = True
        self._found.setdefault(words, (shown.place._replace(word=place.start), passage))

    def _find_truncated(self) -> None:
        """Find the sentences, or the beginning, of documents that are only partly in a prompt."""
        missing = [words for words in self._documents if words not in self._found]
        for words in missing[:_MOST_TRUNCATED]:
            candidate, marked = self._documents[words]
            if marked is not None:
                continue
            original, kept = candidate.passage.text, list[tuple[_PromptText, slice, str]]()
            sentences = [part for part in _SENTENCE_END.split(original) if part and part.strip()]
            for sentence in sentences if len(sentences) > 1 else ():
                if found := self._free_place(normalize(sentence)):
                    kept.append((*found, sentence.strip()))
            length = sum(len(part) for *_, part in kept)
            if (beginning := self._beginning(original)) and len(beginning[2]) >= length:
                kept = [beginning]
            if kept:
                for shown, place, _ in kept:
                    shown.text.mark(place, Owner.DOCUMENT)
                passage = candidate.passage._replace(text=" ".join(part for *_, part in kept))
                first = min(shown.place._replace(word=place.start) for shown, place, _ in kept)
                self._found[words] = first, passage

    def _beginning(self, original: str) -> tuple[_PromptText, slice, str] | None:
        """Longest beginning of a passage in a prompt, down to whole words."""
        words = normalize(original).split()
        if not self._free_place(" ".join(words[: 2 * _LEAST_PART])):
            return None
        # If a beginning is shown, every shorter one is.
        ends = [match.end() for match in _WORDS.finditer(original)]
        count = bisect_left(
            ends, 1, key=lambda end: self._free_place(normalize(original[:end])) is None
        )
        cut = original[: ends[count - 1]] if count else ""
        found = self._free_place(normalize(cut))
        return (*found, cut) if found else None

    def _free_place(self, words: str) -> tuple[_PromptText, slice] | None:
        """Place of words without an owner; None if there are too few."""
        if words.count(" ") < _LEAST_PART - 1 or not is_telling(words):
            return None
        places = (
            (shown, place)
            for shown in self._texts
            for place in shown.text.places(words)
            if shown.text.is_free(place)
        )
        return next(places, None)

    # Result

    def found(self, history: Sequence[Turn], texts: Iterable[str]) -> FoundContext:
        """The context, once all prompts are read."""
        rest: dict[str, None] = {}
        for shown in self._texts:
            text = shown.text
            if shown.is_source and Owner.DOCUMENT not in text.owners and self._take_source(shown):
                continue
            if any(map(says_something, text.unowned())):
                asked = () if self._asks_itself else (Owner.QUESTION,)
                rest.setdefault(text.without(Owner.MODEL, *asked))
        # Passages that begin at one place: the longer before what it holds.
        in_order = sorted(self._found.items(), key=lambda each: (each[1][0], -len(each[0])))
        passages = [passage for _, (_, passage) in in_order]
        left_out = [
            document.candidate.passage
            for words, document in self._documents.items()
            if words not in self._found
        ]
        cut = tuple(self._cut)
        prompt, missing = "\n\n".join(rest), ""
        words = [] if passages else self._application_words(prompt, texts)
        if not passages and max(words, default=0) < _LEAST_OF_APPLICATION:
            missing = "nothing_retrieved"
            if self._documents or self._saw_reply:
                missing = "not_in_prompt" if self._documents else "only_replies"
        return FoundContext(passages, "prompt", missing, history, prompt, left_out, cut)

    def _take_source(self, shown: _PromptText) -> bool:
        """Make a source a chunk; False if a part of it is earlier words of a model."""
        text = shown.text
        if Owner.MODEL in text.owners:
            return False
        self._found.setdefault(text.words, (shown.place, Passage(text.text)))
        return True

    def _application_words(self, prompt: str, texts: Iterable[str]) -> list[int]:
        """Numbers of words of application texts in the prompt."""
        shown = f" {normalize(prompt)} "
        held = set(shown.split())
        found = []
        for text in texts:
            words = self._normalize(text)
            if (
                words
                and f" {words} " in shown
                and words != self._question
                and not self._models.has_said(words)
                and not (is_telling(self._question) and self._question in words)
            ):
                found.append(words.count(" ") + 1)
        for words in self._documents:  # written out otherwise
            own = {word for word in words.split() if len(word) > 3 or word.isdigit()}
            if len(own) > 3 and sum(word in held for word in own) >= _REWRITTEN * len(own):
                found.append(len(own))
        return found
