"""The calls of models that led to an answer.

The reply of a call is the answer, or a part of it, only if it occurs in the run's output. Calls
whose replies occur in that call's prompt led to the answer too, and so on: drafts, sub-questions,
agents as tools. Graders, routers and query writers did not: their replies are in no prompt.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import cache
from math import inf
from typing import NamedTuple

from ragaliq.capture.phrases import MarkedText, PhraseIndex, is_telling, normalize
from ragaliq.capture.texts import Message

# Least letters of a short answer whose occurrence in another text is not chance.
_TELLING = 20
# Least share of an answer's sequences of three words that a reply holds, and of a structured
# reply's words that the answer holds.
_TOUCHED_UP, _FILLED_IN = 0.5, 0.6
# A reply of fewer words grades rather than answers.
_VERDICT_WORDS = 4
# Most earlier calls whose texts may be in a call's prompt.
_MOST_BEFORE = 20
_ACTION_INPUT = re.compile(r"^Action Input:(.+)", re.MULTILINE | re.DOTALL)
_CITED = re.compile(r"\[\^?\d+[^\]]{0,20}\]|【[^】]*】")  # applications add or remove them


class Call(NamedTuple):
    """One call of a model.

    Attributes:
        messages: Its prompt.
        reply: Its reply; None if it failed.
        tool_arguments: Texts in the arguments of the tools that it called: a structured answer is
            often given as a tool's argument.
        began: Position of its start in the run's order of events.
        ended: Position of its end there.
        is_for_retriever: Whether it ran inside a retriever: its reply is a query or a grade, not an
            answer.
        for_tool: Result of the tool that it ran inside, which may repeat its reply; empty for none.
        to_answer: Number of enclosing steps up to one that returned the answer; infinite for none.
            Of several calls with the same reply, the nearest gave the answer.
    """

    messages: Sequence[Message]
    reply: str | None
    tool_arguments: Sequence[str] = ()
    began: int = 0
    ended: int = 0
    is_for_retriever: bool = False
    for_tool: str = ""
    to_answer: float = inf


def written_arguments(reply: str) -> list[str]:
    """Arguments of a tool in the reply of an agent that reasons in text."""
    written = _ACTION_INPUT.search(reply)
    return [] if written is None else [written[1].strip()]


def without_citations(text: str) -> str:
    """Remove numbered citations from a text."""
    return _CITED.sub(" ", text)


def calls_behind(
    calls: Sequence[Call],
    answer: str,
    queries: Collection[str],
    words: Callable[[str], str],
) -> list[Call]:
    """Calls that led to an answer: first those that gave it, then those they depend on.

    Args:
        calls: The run's calls, in the order of their beginnings.
        answer: The answer.
        queries: Normalized retriever queries: a query in a prompt does not prove that its author's
            call led to the answer.
        words: Normalizes a text, and remembers it.
    """
    answering = answering_calls(calls, answer)
    replies: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if call.reply and not call.is_for_retriever and (reply := words(call.reply)) not in queries:
            replies[reply].append(call)
            if reply.startswith(cut := words(call.for_tool)):  # the tool cuts it
                replies[cut].append(call)
        for text in () if call.is_for_retriever else values_of(call):  # of a structured reply
            if is_telling(value := words(text)) and value not in queries:
                replies[value].append(call)
    index = PhraseIndex(reply for reply in replies if is_telling(reply))
    short = PhraseIndex(reply for reply in replies if not is_telling(reply) and not reply.isdigit())
    inside = cache(index.inside)

    @cache
    def alone(original: str) -> list[str]:
        here = short.find(words(original))
        text = MarkedText(original) if here else None
        return [
            reply
            for reply, places in here.items()
            if text is not None and any(text.stands_alone(text.place(at, reply)) for at in places)
        ]

    behind, todo, known = list[Call](), list(answering), set[int]()
    while todo:
        call = todo.pop(0)
        if id(call) in known:
            continue
        known.add(id(call))
        behind.append(call)
        found: set[str] = set()
        for message in call.messages:
            shown = (*message.texts, *message.documents)
            for text in shown:
                found.update(inside(words(text)))
                found.update(alone(text))
            if len(shown) > 1:
                found.update(inside(words(message.text)))
        todo += [each for reply in found for each in replies[reply] if each.ended <= call.began]
    return behind


def answering_calls(calls: Sequence[Call], answer: str) -> list[Call]:
    """Calls whose replies are the answer or parts of it; none if no reply occurs in it."""
    answer = normalize(without_citations(answer))
    if not answer:
        return []
    replied = [
        (call, [normalize(without_citations(text)) for text in (call.reply, *call.tool_arguments)])
        for call in calls
        if call.reply is not None and not call.is_for_retriever
    ]
    same = [call for call, texts in replied if answer in texts]
    # A field of a structured reply, or a reply with more around it.
    padded = f" {answer} "
    same = same or [call for call, texts in replied if any(padded in f" {text} " for text in texts)]
    if same:
        # A grader's "yes" may be the answer's words as well.
        return [min(reversed(same), key=lambda call: call.to_answer)]
    return _parts(replied, answer) or _touched_up(replied, answer)


class FinalReply(NamedTuple):
    """Final reply of a run whose output does not show the answer.

    Attributes:
        call: The call that gave it; None if no model replied.
        is_doubtful: Whether another reply may be the answer: a draft and its revision from the same
            documents are indistinguishable.
    """

    call: Call | None
    is_doubtful: bool = False

    @property
    def text(self) -> str:
        """Text of the reply, or the arguments of a tool that ended the run."""
        if self.call is None:
            return ""
        return self.call.reply or next(iter(self.call.tool_arguments), "")


def final_reply(calls: Sequence[Call], documents: Collection[str]) -> FinalReply:
    """Last reply that was made from the documents, or rewords one that was.

    A later reply that repeats neither the reply in its prompt nor the documents is a check of that
    reply, a follow-up question or the conversation's title; none of these is the answer.

    Args:
        calls: The run's calls, in the order of their beginnings.
        documents: The texts that were found.
    """
    in_order = sorted((c for c in calls if not c.is_for_retriever), key=lambda call: call.ended)
    replied = [call for call in in_order if (call.reply or "").strip()]
    if in_order and in_order[-1] not in replied and in_order[-1].tool_arguments:
        return FinalReply(in_order[-1])
    shown = [
        call
        for place, call in enumerate(replied)
        if any(message.role == "tool" for message in call.messages)
        or _documents_in(call, documents, replied[max(place - _MOST_BEFORE, 0) : place])
    ]
    pool = [call for call in shown if not is_grade(call.reply)] or shown or replied
    if not pool:
        return FinalReply(None)
    last = pool[-1]
    for call in replied[replied.index(last) + 1 :]:
        if _quotes(call, last) and _shared(call.reply, last.reply) >= _TOUCHED_UP:
            last = call
    for draft in reversed(pool[: pool.index(last)] if last in pool else ()):
        held = _documents_in(last, documents)
        if is_grade(draft.reply) or not _quotes(last, draft) or not held:
            continue
        if held <= _documents_in(draft, documents):
            texts = " ".join(held)
            if _shared(last.reply, f"{texts} {draft.reply}") or not _shared(draft.reply, texts):
                return FinalReply(last, is_doubtful=True)
            last = draft
    return FinalReply(last)


def _shown_to(call: Call) -> str:
    """Prompt of a call without its own conversation."""
    return "\n".join(text for m in call.messages if m.role != "assistant" for text in m.texts)


def _documents_in(call: Call, documents: Collection[str], before: Sequence[Call] = ()) -> set[str]:
    """Documents in a call's prompt, without those that only an earlier answer repeats."""
    prompt = _shown_to(call)
    for earlier in before:
        prompt = prompt.replace(earlier.reply or "", "") if earlier.reply else prompt
    return {text for text in documents if text in prompt}


def is_grade(reply: str | None) -> bool:
    """True if a reply is too short to be an answer made from documents."""
    return len((reply or "").split()) < _VERDICT_WORDS


def _quotes(call: Call, earlier: Call) -> bool:
    return call.began >= earlier.ended and (earlier.reply or "").strip() in _shown_to(call)


def _shared(text: str | None, other: str | None) -> float:
    """Share of a text's sequences of three words that occur in another."""
    own, others = (_trigrams(normalize(each or "")) for each in (text, other))
    return len(own & others) / len(own) if own else 0.0


def _parts(replied: Sequence[tuple[Call, list[str]]], answer: str) -> list[Call]:
    """Calls whose replies occur in the answer; of equal ones as many as occur."""
    telling = max(1, min(_TELLING, len(answer) // 2))
    parts: defaultdict[str, list[Call]] = defaultdict(list)
    for call, (reply, *_) in replied:
        if (len(reply) >= telling or is_telling(reply)) and f" {reply} " in f" {answer} ":
            parts[reply].append(call)
    whole = [
        text
        for text in parts
        if not any(f" {text} " in f" {other} " for other in parts.keys() - {text})
    ]
    found = [call for text in whole for call in parts[text][-answer.count(text) :]]
    return list({id(call): call for call in found}.values())


def _touched_up(replied: Sequence[tuple[Call, list[str]]], answer: str) -> list[Call]:
    """Call whose reply was rewritten, or whose structured reply filled a template."""
    grams, words = _trigrams(answer), set(answer.split())
    best: tuple[float, Call] | None = None
    for call, texts in sorted(replied, key=lambda each: each[0].ended):
        share = len(grams & _trigrams(" ".join(texts))) / len(grams) if grams else 0.0
        if share < _TOUCHED_UP:
            values = normalize(" ".join(values_of(call))).split()
            filled = sum(value in words for value in values) / len(values) if values else 0.0
            share = _TOUCHED_UP * filled if filled >= _FILLED_IN else 0.0
        if share and (best is None or share >= best[0]):
            best = share, call
    return [] if best is None else [best[1]]


def values_of(call: Call) -> list[str]:
    """Values of a structured reply, without field names."""
    reply = (call.reply or "").strip().removeprefix("```json").strip("`\n ")
    values, todo = list(call.tool_arguments), []
    if reply[:1] in {"{", "["}:
        with suppress(ValueError, RecursionError):
            todo.append(json.loads(reply))
    while todo:
        held = todo.pop()
        if isinstance(held, dict | list):
            todo += held.values() if isinstance(held, dict) else held
        elif held is not None and not isinstance(held, bool):
            values.append(str(held))
    return values


def _trigrams(text: str) -> set[tuple[str, ...]]:
    held = text.split()
    return {tuple(held[i : i + 3]) for i in range(len(held) - 2)}
