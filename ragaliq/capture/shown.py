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
- What such a message, or a text that a step returned, says around and between the passages in it:
  the price after a description, an order's status after the rules.
"""

from __future__ import annotations

import functools
import html
import itertools
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import NamedTuple

from ragaliq.capture.conversation import messages_before, turns_of_messages
from ragaliq.capture.texts import Message
from ragaliq.core.passages import Passage
from ragaliq.core.test_case import Turn

# Letters that a text has at least if finding it elsewhere is to mean anything.
_TELLING = 20
# A passage was cut, not dropped, if this much of it is there.
_CUT_TELLING = 30
# Share of a text's runs of three words that must be found where it was written out otherwise.
_REWRITTEN = 0.7
_ANSWERED = 0.5

_WORDS = re.compile(r"[^\W_]+")
# A chunk of English takes a tenth of the time so.
_ASCII = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+|(?<=[。！？])")
_ASKS = ("?", "？", "؟")
_STATES = (".", "!", "。", "！")
_CITED = re.compile(r"\[\^?\d+[^\]]{0,20}\]|【[^】]*】")  # which applications add, or take away
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})|\\[nrt\"\\/]")


# What tells only where a text came from: addresses, tags, names of fields, numbers of a
# list, scores.
_LABEL = re.compile(
    r"https?://\S+|<[^<>]*>|[\"']?[^\W\d][\w -]{0,40}[\"']?\s*[:=]"
    r"|[\[(]\d{1,3}[\])]|^[ \t]*\d{1,3}[.)]\s|\b[01]?\.\d+\b",
    re.MULTILINE,
)
# Between paragraphs, or records: of a list, or under keys.
_BREAK = re.compile(r"\n\s*\n|[}\])]\s*,\s*(?:\"[^\"\n]{0,80}\"\s*:\s*)?\w*[{\[(]")
_STOPS = frozenset(".!?。！？")


class FoundContext(NamedTuple):
    """The context of an answer, and how it was found.

    Attributes:
        passages: In rank order.
        source: Where it came from, such as `prompt`, `retriever` or `tool`.
        missing: Why there is none.
        history: The conversation before the question, where one was seen.
    """

    passages: Sequence[Passage]
    source: str = ""
    missing: str = ""
    history: Sequence[Turn] = ()


class Call(NamedTuple):
    """One call of a model.

    Attributes:
        messages: Its prompt.
        reply: What it said; None if it did not end well.
        also: The texts in the arguments of tools it called: structured answers are given so.
        began: When it began, and
        ended: when it ended, as places in the run's order of events.
        is_aside: Whether it works for a retriever; its reply is no answer to anybody.
        for_tool: What the tool said that it works for, which may pass its reply on.
        to_answer: How many steps around it is one that returned the answer; infinite for none.
    """

    messages: Sequence[Message]
    reply: str | None
    also: Sequence[str] = ()
    began: int = 0
    ended: int = 0
    is_aside: bool = False
    for_tool: str = ""
    to_answer: float = inf


_KINDS = ("document", "tool", "block", "text", "loose")


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
    if text.isascii():
        return " ".join(text.translate(_ASCII).split())
    return " ".join(_WORDS.findall(text.casefold()))


def shown(
    calls: Sequence[Call],
    candidates: Sequence[Candidate],
    question: str,
    answer: str,
    *,
    queries: Iterable[str] = (),
    asides: Iterable[str] = (),
) -> FoundContext | None:
    """The context of an answer, by what its model was shown.

    Args:
        calls: The run's model calls, in the order of their beginnings.
        candidates: What may be context, in the order in which it turned up.
        question: The user's question, which is no context.
        answer: The answer.
        queries: What retrievers were asked.
        asides: What is no evidence next to a passage either: the conversation before.

    Returns:
        None where that is not known: no call gave the answer, or its prompt is not to be seen.
        The history is what stands in the answering prompt before the question: a conversation, or
        examples of one.
    """
    finding = _Finding(calls, candidates, question, answer, queries=queries, asides=asides)
    if not any(prompt.text.strip() for prompt in finding.prompts):
        return None
    kinds = {candidate.kind for candidate in candidates}
    has_tools = any(prompt.tools for prompt in finding.prompts)
    finding.take_whole()
    finding.take_parts()
    if has_tools:
        finding.take_tool_messages()
    if "text" in kinds:
        finding.take_texts("text")
    if not finding.found and "loose" in kinds:
        finding.take_texts("loose")
    if not finding.found:
        finding.take_rewritten()
    finding.take_surroundings()
    if finding.found:
        # What begins at one place: the longer before what it holds.
        in_order = sorted(finding.found.items(), key=lambda each: (each[1][0], -len(each[0])))
        passages = [passage for _, (_, passage) in in_order]
        return FoundContext(passages, "prompt", history=finding.history)
    if has_tools:
        return FoundContext((), "prompt", "only_replies", finding.history)
    had_any = any(c.kind != "loose" and c.passage.text.strip() for c in candidates)
    missing = "not_in_prompt" if had_any else "nothing_retrieved"
    return FoundContext((), "prompt", missing, finding.history)


_Place = tuple[int, int]
"""When a call began, and where in its prompt a text stands."""


class _Prompt:
    """What one call was shown, as words.

    Attributes:
        call: The call.
        text: All that may be evidence.
        tools: What tools said in this turn, and documents that came with the question: as words,
            and as they said it.
        said: What the assistant said in this turn.
    """

    def __init__(self, call: Call, norm: Callable[[str], str]) -> None:
        self.call = call
        self.tools: list[tuple[str, str]] = []
        self.said: list[str] = []
        last = max((i for i, m in enumerate(call.messages) if m.role == "user"), default=-1)
        pieces: list[str] = []
        for position, message in enumerate(call.messages):
            texts = [norm(text) for text in message.texts]
            if message.role not in {"assistant", "tool"}:
                pieces += texts
                if message.documents and (position >= last or message.role != "user"):
                    documents = [norm(text) for text in message.documents]
                    self.tools += zip(documents, message.documents, strict=True)
                    pieces += documents
            elif position > last and message.role == "tool":
                self.tools += zip(texts, message.texts, strict=True)
                pieces += texts
            elif position > last:
                self.said += (*texts, norm(message.text))
        self.text = f" {' '.join(pieces)} "


class _Standing:
    """Which texts stand in others, word by word, without comparing many with each other.

    Each is filed under the run of up to four words in it that the fewest have.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        distinct = dict.fromkeys(filter(None, texts))
        self._few = list(distinct) if len(distinct) <= _FEW else None
        if self._few is not None:
            return
        runs = {text: set(_runs(text.split())) for text in distinct}
        counts = Counter(run for held in runs.values() for run in held)
        self._filed: defaultdict[str, list[str]] = defaultdict(list)
        for text, held in runs.items():
            self._filed[min(held, key=lambda run: (counts[run], run))].append(text)

    def inside(self, text: str) -> list[str]:
        """Those that stand in a text, itself excluded."""
        padded = f" {text} "
        if self._few is not None:
            return [known for known in self._few if known != text and f" {known} " in padded]
        split = text.split()
        runs = {run for size in range(1, _RUN + 1) for run in _runs(split, size)}
        filed = (known for run in runs if run in self._filed for known in self._filed[run])
        return [known for known in filed if known != text and f" {known} " in padded]


_RUN = 4
_FEW = 16  # texts to compare with each other, which is faster than to file them


def _runs(split: Sequence[str], size: int = _RUN) -> Iterator[str]:
    """The runs of so many words in a text; the text itself where it has fewer."""
    size = min(size, len(split))
    return (" ".join(split[at : at + size]) for at in range(len(split) - size + 1))


class _Finding:
    """One search for a context.

    Attributes:
        prompts: The prompts that count, the earliest first.
        found: The passages found so far by their words, each with where it stands.
        history: The turns before the question in the answering prompt.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        candidates: Sequence[Candidate],
        question: str,
        answer: str,
        *,
        queries: Iterable[str],
        asides: Iterable[str],
    ) -> None:
        self._norm = norm = functools.cache(words)
        self._all, self._queries = candidates, {norm(query) for query in queries}
        self._question, self._answer = norm(question), norm(_CITED.sub(" ", answer))
        # When a model first gave each reply.
        self._ended: dict[str, int] = {}
        for call in calls:
            if not call.is_aside and (reply := norm(call.reply or "")):
                self._ended[reply] = min(call.ended, self._ended.get(reply, call.ended))
        # A tool may have given the answer itself, as another agent does: that supports nothing.
        given = [c for c in candidates if c.kind == "tool" and norm(c.passage.text) == self._answer]
        self._is_given = bool(given)
        self._replies = [
            (norm(call.reply), self._as_said(call))
            for call in calls
            if call.reply is not None and not call.is_aside
        ]
        # What a model writes down with a tool is its own as well.
        self._wrote = self._ended.copy()
        for call in calls:
            for text in map(norm, call.also):
                if len(text) >= _TELLING:
                    self._wrote[text] = min(call.ended, self._wrote.get(text, call.ended))
        # What tools pass on of a model of their own behind a label; elsewhere in a text a short
        # reply may be what they searched with.
        self._reports = {
            said
            for reply, call in self._replies
            if " " in reply and (said := norm(call.for_tool)).endswith(f" {reply}")
        }
        self._holders: dict[str, list[tuple[str, int]]] = {}
        # What a model writes of what it was shown is not its own.
        self._told: dict[str, int] = {}
        for call in calls:
            for message in call.messages:
                for text in message.texts if message.role == "tool" else ():
                    self._told.setdefault(norm(text), call.began)
        self.found: dict[str, tuple[_Place, Passage]] = {}
        used: dict[int, _Prompt] = {}
        todo = self._answering() if self._answer else []
        shown_last = todo[0].messages if todo else ()
        self.history = turns_of_messages(messages_before(shown_last, question, is_prompt=True))
        while todo:
            call = todo.pop()
            if id(call) not in used:
                used[id(call)] = prompt = _Prompt(call, norm)
                # The earlier calls whose replies stand in this prompt.
                todo += [
                    earlier
                    for reply, earlier in self._replies
                    if reply
                    and earlier is not call
                    and earlier.ended <= call.began
                    and self._is_passed_on(reply, earlier, prompt)
                ]
        self.prompts = sorted(used.values(), key=lambda prompt: prompt.call.began)
        # What stands in a prompt was there before it.
        self._began = max((prompt.call.began for prompt in self.prompts), default=0)
        self._wrote_before = [t for t, ended in self._wrote.items() if ended < self._began]
        self._earlier = _Standing(self._wrote_before) if self._wrote_before else None
        self._asides = {norm(text) for text in (*asides, *(turn.text for turn in self.history))}
        # A catalogue of questions may hold the user's own, with its answer.
        if all(
            each.kind != "document" or norm(each.passage.text) != self._question
            for each in candidates
        ):
            self._asides.add(self._question)
        self._candidates = self._distinct(each for each in candidates if each not in given)

    def _is_passed_on(self, reply: str, call: Call, prompt: _Prompt) -> bool:
        """Whether a prompt holds what an earlier call replied, and so rests on what that saw."""
        if any(reply == text for text, _ in prompt.tools):
            # A few letters are also what another tool says: a grade is no calculator's result.
            return len(reply) >= _TELLING or reply == self._norm(call.for_tool)
        if reply in self._queries or _only_asks(call.reply or ""):
            return False  # what a model searched with tells nothing of what it was shown
        if len(reply) >= _TELLING:
            return f" {reply} " in prompt.text or reply in prompt.said
        if " " not in reply:
            return False
        # A short one may also be a document's words, or the question's.
        times = prompt.text.count(f" {reply} ")
        return times > 0 and times > sum(
            here for text, here in self._texts_with(reply) if f" {text} " in prompt.text
        )

    def _texts_with(self, reply: str) -> list[tuple[str, int]]:
        """Documents, and the question, that hold a reply, and how often; looked for once."""
        if reply not in self._holders:
            own = {self._norm(c.passage.text) for c in self._all if c.kind in {"document", "text"}}
            counts = {t: f" {t} ".count(f" {reply} ") for t in (*own, self._question) if t != reply}
            self._holders[reply] = [(text, count) for text, count in counts.items() if count]
        return self._holders[reply]

    def _as_said(self, call: Call) -> Call:
        """A call in whose prompt what models said since the question is the assistant's.

        Graphs of several agents often pass their reports on as messages of the user's.
        """
        users = [at for at, message in enumerate(call.messages) if message.role == "user"]
        if len(users) < 2:
            return call
        texts = {at: self._norm(call.messages[at].text) for at in users}
        asked = next((at for at in users if self._question and self._question in texts[at]), None)
        if asked is None:
            return call
        messages = [
            message._replace(role="assistant")
            if at > asked and texts.get(at) in self._ended
            else message
            for at, message in enumerate(call.messages)
        ]
        return call._replace(messages=messages)

    def _answering(self) -> list[Call]:
        """The calls whose replies are the answer, or make it up."""
        answer = self._answer
        texts = [
            ([self._norm(_CITED.sub(" ", text)) for text in (call.reply or "", *call.also)], call)
            for _, call in self._replies
        ]
        same = [call for said, call in texts if answer in said]
        # A field of a structured reply, or a reply with more around it.
        same = same or [call for said, call in texts if any(map(_stands_in(answer), said))]
        if same:
            # A grader's "yes" may be the answer's words as well.
            return [min(reversed(same), key=lambda call: call.to_answer)]
        # Several replies that stand in the answer; of equal ones as many as stand there.
        telling = max(1, min(_TELLING, len(answer) // 2))
        parts: defaultdict[str, list[Call]] = defaultdict(list)
        for (reply, *_), call in texts:
            if len(reply) >= telling and f" {reply} " in f" {answer} ":
                parts[reply].append(call)
        whole = [text for text in parts if not any(map(_stands_in(text), parts.keys() - {text}))]
        if whole:
            return [call for text in whole for call in parts[text][-answer.count(text) :]]
        # A reply that was touched up.
        grams = _grams(answer)
        best, best_share = None, _ANSWERED
        for said, call in sorted(texts, key=lambda each: each[1].ended):
            share = len(grams & _grams(" ".join(said))) / len(grams) if grams else 0.0
            if share >= best_share:
                best, best_share = call, share
        return [best] if best is not None else []

    def _repeats_reply(self, text: str, before: int, share: float = 0.5) -> bool:
        """Whether a text is little more than what models had said before it turned up."""
        if self._earlier is None:
            return False
        if text in self._reports or self._wrote.get(text, before) < before:
            return True
        left = text
        said = [reply for reply in self._earlier.inside(text) if len(reply) >= _TELLING]
        for reply in sorted(said, key=self._wrote.__getitem__):
            if self._wrote[reply] < before:
                left = left.replace(reply, "")
        return len(left.strip()) <= (1 - share) * len(text)

    def _is_of_reply(self, text: str, before: int) -> bool:
        """Whether a text is a part of what a model had said before it turned up, as of a list."""
        stands_in = _stands_in(text)
        return any(
            stands_in(self._norm(said))
            for _, call in self._replies
            if call.ended < before
            for said in (call.reply or "", *call.also)
        )

    def _distinct(self, candidates: Iterable[Candidate]) -> list[tuple[str, Candidate]]:
        """The candidates that may be evidence, each text once, in its fullest form."""
        fullest: dict[str, tuple[tuple[int, ...], Candidate]] = {}
        for candidate in candidates:
            passage = candidate.passage
            text = self._norm(passage.text) or passage.text.strip()
            # A catalogue of questions is searched by them: the user's own is no evidence.
            if not text or text == self._question:
                continue
            rank, scored = _KINDS.index(candidate.kind), passage.score is not None
            has = -rank, passage.id is not None, scored, bool(passage.metadata)
            before = fullest.get(text)
            if before is None:
                fullest[text] = has, candidate
            elif has >= before[0]:
                fullest[text] = has, candidate._replace(at=before[1].at)
        distinct = [(text, candidate) for text, (_, candidate) in fullest.items()]
        if self._earlier is None:
            return distinct
        return [
            (text, each)
            for text, each in distinct
            # A found document may well hold a query that a model wrote.
            if not self._repeats_reply(
                text, min(each.at, self._began), 0.8 if each.kind == "document" else 0.5
            )
        ]

    def _of_kind(self, *kinds: str) -> list[tuple[str, Candidate]]:
        return [each for each in self._candidates if each[1].kind in kinds]

    def _place_of(self, text: str) -> _Place | None:
        """Where a text stands in the prompts, first."""
        # Texts that write no spaces between words have no boundaries to look for.
        sought = f" {text} " if text.isascii() or len(text) < 8 else text
        for prompt in self.prompts:
            at = prompt.text.find(sought)
            if at >= 0:
                return prompt.call.began, at
        return None

    @functools.cached_property
    def _runs(self) -> set[str]:
        return {run for prompt in self.prompts for run in _runs(prompt.text.split())}

    @functools.cached_property
    def _reply_runs(self) -> set[str]:
        return {run for text in self._wrote_before for run in _runs(text.split())}

    def _may_stand(self, text: str) -> bool:
        """Whether a text begins as a prompt does somewhere; most of a dropped document does not."""
        first = text.split(maxsplit=_RUN)[:_RUN]
        return len(first) < _RUN or not text.isascii() or " ".join(first) in self._runs

    # What is taken, in this order

    def take_whole(self) -> None:
        """Documents, and what tools said, that stand in the prompts from end to end."""
        found = self.found
        placed = [
            (text, candidate, place)
            for text, candidate in self._of_kind("document", "tool", "block")
            if (place := self._place_of(text)) is not None
        ]
        found.update({t: (place, c.passage) for t, c, place in placed if c.kind == "document"})
        if len(placed) == 1 and found:
            return
        standing = _Standing(text for text, _, _ in placed)
        for text, candidate, place in placed:
            if candidate.kind != "document" and found.keys().isdisjoint(standing.inside(text)):
                found[text] = place, candidate.passage
        # Passages that are shown only as a part of longer ones, as the children of a parent are.
        holders = defaultdict[str, list[str]](list)
        for other in found:
            for text in standing.inside(other):
                if text in found:
                    holders[text].append(other)
        for text, around in holders.items():
            times, *of_holders = (
                # Neighbours share the space between them, so all are counted without it.
                sum(prompt.text.count(each) for prompt in self.prompts)
                for each in (text, *around)
            )
            within = (n * other.count(text) for n, other in zip(of_holders, around, strict=True))
            if times <= sum(within):
                del found[text]

    def take_parts(self) -> None:
        """Of other documents the sentences, or the beginning, that stand in the prompts.

        What a whole passage there says as well, as where pieces overlap, is no part of another.
        """
        whole = frozenset(self.found)
        for text, candidate in self._of_kind("document"):
            original = candidate.passage.text
            if text in whole:
                continue
            kept: list[tuple[_Place, str]] = []
            sentences = [part for part in _SENTENCE_END.split(original) if part and part.strip()]
            for sentence in sentences if len(sentences) > 1 else ():
                sought = words(sentence)
                is_likely = len(sought) >= _TELLING and self._may_stand(sought)
                place = self._place_of(sought) if is_likely else None
                if place is not None and not any(map(_stands_in(sought), whole)):
                    kept.append((place, sentence.strip()))
            beginning = self._beginning(original)
            if beginning is not None and len(beginning[1]) >= sum(len(each) for _, each in kept):
                kept = [beginning]
            if kept:
                cut = " ".join(each for _, each in kept)
                known = self._norm(cut)
                if known not in self.found and not any(map(_stands_in(known), whole)):
                    passage = candidate.passage._replace(text=cut)
                    self.found[known] = min(place for place, _ in kept), passage

    def _beginning(self, original: str) -> tuple[_Place, str] | None:
        """The longest beginning of a passage that stands in a prompt, down to whole words."""
        if not self._may_stand(words(original)):
            return None
        ends = [match.end() for match in _WORDS.finditer(original)]
        # If a beginning stands there, every shorter one does.
        count = bisect_left(ends, 1, key=lambda end: self._place_of(words(original[:end])) is None)
        cut = original[: ends[count - 1]] if count else ""
        place = self._place_of(words(cut)) if len(words(cut)) >= _CUT_TELLING else None
        return None if place is None else (place, cut)

    def take_tool_messages(self) -> None:
        """This turn's messages of tools in which nothing was found yet."""
        found = self.found
        standing = _Standing({*found, *(text for p in self.prompts for text, _ in p.tools)})
        inside = functools.cache(standing.inside)  # agents are shown a text again with each call
        for prompt in self.prompts:
            for text, original in prompt.tools:
                if (
                    text
                    and not (self._is_given and text == self._answer)
                    and text not in found
                    and found.keys().isdisjoint(inside(text))
                    and not self._repeats_reply(text, self._told.get(text, prompt.call.began))
                ):
                    at = max(0, prompt.text.find(f" {text} "))
                    found[text] = (prompt.call.began, at), Passage(original)

    def take_texts(self, kind: str) -> None:
        """Strings without a document to them, say of a search that plain code made."""
        messages = (message for prompt in self.prompts for message in prompt.call.messages)
        asked = {self._norm(message.text) for message in messages if message.role == "user"}
        taken: dict[str, tuple[_Place, Passage]] = {}
        for text, candidate in self._of_kind(kind):
            is_too_little = kind == "loose" and (
                len(text) <= _CUT_TELLING or (self._question and self._question in text)
            )
            if (
                is_too_little
                or text in {self._question, self._answer}
                or text in asked
                or any(f" {known} " in f" {text} " for known in self.found)
                or any(map(_stands_in(text), self.found))
            ):
                continue
            place = self._place_of(text)
            if place is None or (kind == "loose" and self._is_of_reply(text, candidate.at)):
                continue
            taken[text] = place, candidate.passage
        for text, placed in taken.items():
            if not any(map(_stands_in(text), taken.keys() - {text})):
                self.found[text] = placed

    def take_surroundings(self) -> None:
        """What stands around the passages found, in tools' messages and texts of steps.

        A passage grows by what is said in its paragraph or its record; the rest are passages.
        """
        messages = (message for prompt in self.prompts for message in prompt.call.messages)
        asked = {self._norm(message.text) for message in messages if message.role != "tool"}
        holders: dict[str, tuple[str, int]] = {}  # agents are shown a text again with each call
        for prompt in self.prompts:
            for text, original in prompt.tools:
                began = self._told.get(text, prompt.call.began)
                holders.setdefault(text, (original, began))
        for text, candidate in self._of_kind("text", "loose"):
            # Texts without a name that says so may be whole prompts.
            is_context = candidate.kind == "text"
            is_context = is_context or not (text in asked or self._question in text)
            if is_context and (place := self._place_of(text)) is not None:
                holders.setdefault(text, (candidate.passage.text, place[0]))
        standing, grown = _Standing(self.found), set[str]()
        for text in sorted(holders, key=len, reverse=True):
            original, began = holders[text]
            if text in self.found or self._wrote.get(text, began) < began:
                continue
            for known, part, around in _laid_out(
                original, standing.inside(text), self._no_evidence_in(text, began)
            ):
                said = [each for each in around if _says_something(each)]
                if known in grown or not said or any(map(self._is_in_reply, said)):
                    continue
                if known is not None:
                    place, passage = self.found[known]
                    self.found[known] = place, passage._replace(text=part)
                    grown.add(known)
                    continue
                own = self._norm(part)
                if own not in self.found and (place := self._place_of(own)) is not None:
                    self.found[own] = place, Passage(part)

    def _no_evidence_in(self, text: str, before: int) -> list[str]:
        """What is no evidence wherever it stands: models' words, the question, the history."""
        earlier = self._earlier.inside(text) if self._earlier is not None else ()
        return [
            *(reply for reply in earlier if self._wrote[reply] < before and len(reply) >= _TELLING),
            *(
                each
                for each in self._asides
                if len(each) >= _TELLING and f" {each} " in f" {text} "
            ),
        ]

    def _is_in_reply(self, text: str) -> bool:
        """Whether a text, maybe cut, is a part of what models had said before the last prompt."""
        own = self._norm(text)
        if " ".join(own.split(maxsplit=_RUN)[:_RUN]) not in self._reply_runs:
            return False
        return any(f" {own}" in f" {said}" for said in self._wrote_before)

    def take_rewritten(self) -> None:
        """Documents that were written out otherwise: a table's rows, fields with their names."""
        grams = [(prompt, _grams(prompt.text)) for prompt in self.prompts]
        for text, candidate in self._of_kind("document"):
            own = _grams(text)
            for prompt, held in grams:
                if len(own) >= 5 and len(own & held) >= _REWRITTEN * len(own):
                    self.found[text] = (prompt.call.began, len(prompt.text)), candidate.passage
                    break


def _laid_out(
    original: str, inside: Sequence[str], omitted: Sequence[str] = ()
) -> Iterator[tuple[str | None, str, tuple[str, ...]]]:
    """The parts of a text by the passages, as words, that stand in it.

    Args:
        original: The text.
        inside: The passages.
        omitted: What it is to be read without, as words.

    Returns:
        Of each part the passage in it, or None; the part; and what the passage leaves of it.
    """
    original, spans = _without(original, inside, omitted)
    if not spans:
        return
    is_headed = _says_something(_BREAK.split(original[: spans[0][0]])[-1])
    is_followed = _says_something(_BREAK.split(original[spans[-1][1] :], maxsplit=1)[0])
    begin = 0
    for (start, end, known), after in itertools.zip_longest(spans, spans[1:]):
        if begin == 0 and (breaks := list(_BREAK.finditer(original, 0, start))):
            head = original[: breaks[-1].start()]
            yield None, head.strip(), (head,)
            begin = breaks[-1].end()
        until = len(original) if after is None else after[0]
        breaks = list(_BREAK.finditer(original, end, until))
        if breaks:
            stop, resume = breaks[0].start(), breaks[-1].end()
            if after is None:
                resume = breaks[0].end()
        elif after is None:
            stop = resume = until
        else:
            # A line belongs to the passage in it; lines between as before the first, or after the
            # last. Where that does not tell, they are a passage of their own.
            line = original.find("\n", end, until)
            stop, resume = (end, until) if line < 0 else (line, original.rfind("\n", end, until))
            if not is_headed:
                stop = resume
            elif not is_followed:
                resume = stop
        yield known, original[begin:stop].strip(), (original[begin:start], original[end:stop])
        rest = original[stop : len(original) if after is None else resume]
        yield None, _BREAK.sub("\n\n", rest).strip(), (rest,)
        begin = resume


def _without(
    original: str, inside: Sequence[str], omitted: Sequence[str]
) -> tuple[str, list[tuple[int, int, str]]]:
    """The rest of a text, and where the passages stand in it."""
    if original.lstrip()[:1] in {"{", "["}:
        original = _unescaped(original)
    spans = _places(original, [*inside, *omitted])
    if not omitted or not spans:
        return original, spans
    passages, kept, begin = set(inside), list[str](), 0
    for start, end, known in spans:
        if known not in passages:
            kept.append(original[begin:start])
            begin = end
    text = " ".join([*kept, original[begin:]])
    return text, _places(text, inside, partly=True)


def _places(
    original: str, texts: Sequence[str], *, partly: bool = False
) -> list[tuple[int, int, str]]:
    """Where texts, as words, stand in another, in order; of those that overlap the longest.

    Returns:
        None of them if one is not found, unless they may be: how it is written is not understood.
    """
    # As long as it is, so that places stay.
    tokens = list(_WORDS.finditer(_ESCAPED.sub(lambda match: " " * len(match[0]), original)))
    held = [token[0].casefold() for token in tokens]
    by_size: defaultdict[int, defaultdict[str, list[list[str]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for known in dict.fromkeys(texts):
        split = known.split()
        first = split[:_RUN]
        by_size[len(first)][" ".join(first)].append(split)
    found = [
        (at, split)
        for size, by_first in by_size.items()
        for at, run in enumerate(_runs(held, size))
        for split in by_first.get(run, ())
        if held[at : at + len(split)] == split
    ]
    if not partly and len({tuple(split) for _, split in found}) < len(set(texts)):
        return []
    taken = bytearray(len(original))
    spans: list[tuple[int, int, str]] = []
    for at, split in sorted(found, key=lambda each: -len(each[1])):
        start, end = tokens[at].start(), tokens[at + len(split) - 1].end()
        while original[end : end + 1] in _STOPS:
            end += 1
        if taken.find(1, start, end) < 0:
            taken[start:end] = b"\1" * (end - start)
            spans.append((start, end, " ".join(split)))
    return sorted(spans)


def _unescaped(text: str) -> str:
    """JSON as a model reads it: without the escapes in its texts."""
    plain = {"n": "\n", "r": "\r", "t": "\t"}
    text = _ESCAPED.sub(
        lambda match: chr(int(match[1], 16)) if match[1] else plain.get(match[0][1], match[0][1]),
        text,
    )
    # Two escapes may be one letter.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _says_something(text: str) -> bool:
    """Whether a text says more than where it is from: a number, or three words."""
    said = words(_LABEL.sub(" ", text)).split()
    return len(said) >= 3 or any(map(str.isdigit, "".join(said)))


def _only_asks(reply: str) -> bool:
    """Whether a reply is questions, and tells nothing before them."""
    *before, last = [each.rstrip() for each in _SENTENCE_END.split(reply.strip()) if each] or [""]
    return last.endswith(_ASKS) and not any(
        each.endswith(_STATES) and len(words(each).split()) > 2 for each in before
    )


def _stands_in(text: str) -> Callable[[str], bool]:
    """A test whether a text stands, word by word, in another."""
    padded = f" {text} "
    return lambda within: padded in f" {within} "


def _grams(text: str) -> set[tuple[str, ...]]:
    held = text.split()
    return {tuple(held[i : i + 3]) for i in range(len(held) - 2)}
