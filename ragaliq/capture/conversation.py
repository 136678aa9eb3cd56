"""Conversation before a question: turns from messages, with the chunks of their answers.

The answering model's prompt contains the earlier messages, but rarely the chunks that earlier
answers were made from. `Conversations` remembers those of captured runs.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence

from ragaliq.capture.texts import Message
from ragaliq.core.test_case import RAGTestCase, Turn

# Tool results in the message that LlamaIndex's ReAct agents remember of a turn.
_OBSERVED = re.compile(
    r"^Observation: (.*?)\s*(?=^(?:Thought|Action|Answer): |\Z)", re.MULTILINE | re.DOTALL
)
_MOST_TURNS = 20
_MOST_BYTES = 64 * 1024
_MOST_REPLIES, _LONGEST_REPLY = 8, 2_000
_MOST_CONVERSATIONS = 1_000
_MOST_BYTES_TOGETHER = 16 * 1024 * 1024


def turns_of_messages(messages: Iterable[Message]) -> list[Turn]:
    """Latest turns of a conversation, oldest first: at most 20, of 64 KiB together.

    Tool results, and documents in the question, are the context of the next answer. System
    messages, tool calls and messages without text are skipped.
    """
    turns: list[Turn] = []
    tool_results: list[str] = []
    for message in messages:
        if message.role == "tool":
            tool_results += (text for text in message.texts if text.strip())
        elif message.role == "user" and message.text.strip():
            turns.append(Turn(role="user", text=message.text))
            tool_results = list(message.documents)
        elif message.role == "assistant" and message.text.strip() and not message.is_call:
            tool_results += _OBSERVED.findall(message.text)
            turns.append(Turn(role="assistant", text=message.text, context=list(tool_results)))
            tool_results = []
    return _latest(turns) if turns else turns


def _latest(turns: Sequence[Turn]) -> list[Turn]:
    kept: deque[Turn] = deque()
    room = _MOST_BYTES
    for turn in reversed(turns[-_MOST_TURNS:]):
        room -= turn.size
        if room < 0:
            break
        kept.appendleft(turn)
    return list(kept)


def messages_before(
    messages: Sequence[Message],
    question: str,
    *,
    files: Sequence[str] = (),
    is_prompt: bool = False,
) -> Sequence[Message]:
    """Messages before the question; all of them if the question is not among them.

    Args:
        messages: A conversation.
        question: What is asked.
        files: Texts that came with it, perhaps in messages of their own before it.
        is_prompt: Whether it is what a model was shown. Then the user's last message asks, however
            the question is put there, unless the question itself stands before it: agents that
            call tools by text show what they found as messages of the user's.
    """
    users = [at for at, message in enumerate(messages) if message.role == "user"]
    if not users:  # of a prompt, the question may be in a summary
        return () if is_prompt else messages
    parts, first = parts_of(question), users[-1]
    if is_prompt and not all(part in messages[first].text for part in parts):
        asked = (at for at in reversed(users) if messages[at].text.strip() == question.strip())
        first = next(asked, first)
    is_asked = all(part in messages[first].text for part in parts)
    while first and messages[first - 1].role == "user":
        before = messages[first - 1].text
        held = before if is_asked else messages[first].text
        if not any(file in held for file in files):
            break  # such as an agent's report to its team
        first, is_asked = first - 1, is_asked or all(part in before for part in parts)
    if not is_prompt and not is_asked:
        return messages
    return messages[:first]


def parts_of(question: str) -> list[str]:
    """Paragraphs of a question: files may have stood between them."""
    return [part.strip() for part in question.strip().split("\n\n")]


def _texts_of_models(history: Sequence[Turn], known: Sequence[Turn]) -> set[str]:
    """Texts of a history that are not the user's, whatever their role.

    Agents often pass reports and critiques on as user messages: messages between the latest known
    question and its answer are not from the user.
    """
    texts = {turn.text.strip() for turn in known if turn.role == "assistant"}
    latest_first = [turn.text.strip() for turn in reversed(history)]
    asked, answered = (turn.text.strip() for turn in known[-2:]) if len(known) > 1 else ("", "")
    if answered in latest_first:
        after = latest_first[latest_first.index(answered) + 1 :]
        texts.update(after[: after.index(asked)] if asked in after else ())
    return texts


class Conversations:
    """Latest turns of the latest conversations, by name.

    The queue of a monitor and the reader of trace files keep them: a case whose application sends
    only the latest question gets its history from here.

    At most 1,000 conversations are kept, of 16 MiB together; the least recently used goes first.
    Not thread-safe.
    """

    def __init__(self) -> None:
        self._replies: OrderedDict[str, list[str]] = OrderedDict()
        self._turns: OrderedDict[str, list[Turn]] = OrderedDict()
        self._size = 0
        self._fetched: set[str] = set()  # names of those with fetched texts, which no sink stores

    def turns(self, name: str) -> Sequence[Turn]:
        """Remembered turns of a conversation."""
        return self._turns.get(name, ())

    def add_replies(self, name: str, new: Iterable[str]) -> Sequence[str]:
        """Remember the replies of a run's models, such as a summary; return those of earlier runs.

        The latest eight of up to 2,000 characters are kept.
        """
        known = self._replies.pop(name, [])
        kept = [reply for reply in new if len(reply) <= _LONGEST_REPLY]
        if kept or known:
            self._replies[name] = [*known, *kept][-_MOST_REPLIES:]
        if len(self._replies) > _MOST_CONVERSATIONS:
            self._replies.popitem(last=False)
        return known

    def joined(self, case: RAGTestCase, name: str, *, fills: bool = True) -> RAGTestCase:
        """Add the remembered conversation to a case, and remember the case's own turn.

        Args:
            case: The case. The answers in its history get the chunks that they were made from.
            name: Name of the conversation.
            fills: Whether a case without a history gets the turns that are remembered: of a run,
                `RunLog` takes those that its models were shown.
        """
        known = self._turns.pop(name, [])
        self._size -= sum(turn.size for turn in known)
        history = case.history or (known if fills else [])
        from_models = _texts_of_models(history, known)
        history = [
            turn.model_copy(update={"role": "assistant"})
            if turn.text.strip() in from_models
            else turn
            for turn in history
        ]
        chunks = {turn.text.strip(): turn.context for turn in known if turn.context}
        history = [
            turn.model_copy(update={"context": chunks.get(turn.text.strip(), [])})
            if turn.role == "assistant" and not turn.context
            else turn
            for turn in history
        ]
        is_fetched = case.sources.has_fetched_texts or (bool(history) and name in self._fetched)
        (self._fetched.add if is_fetched else self._fetched.discard)(name)
        asked = Turn(role="user", text=case.query)
        answered = Turn(role="assistant", text=case.response, context=case.context)
        self._turns[name] = turns = _latest([*history, asked, answered])
        self._size += sum(turn.size for turn in turns)
        while len(self._turns) > _MOST_CONVERSATIONS or self._size > _MOST_BYTES_TOGETHER:
            forgotten, gone = self._turns.popitem(last=False)
            self._size -= sum(turn.size for turn in gone)
            self._fetched.discard(forgotten)
        if not history:
            return case
        sources = case.sources.model_copy(update={"has_fetched_texts": is_fetched})
        return case.model_copy(update={"history": history, "sources": sources})
