"""What the conversation before a question lends to it: evidence, and what the question refers to.

A claim is checked against this turn's chunks first, then against those of earlier turns, then
against what the user said. What an assistant said is never evidence: one invention would support
the next. That holds for its echo too, a user who repeats what the assistant said. Nor is what a
user asks or only supposes ("I thought refunds take 30 days").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ragaliq.core.evaluator import identity_of
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import EvidenceSpan, SupportSource
from ragaliq.core.test_case import ChunkId, RAGTestCase, Turn
from ragaliq.evaluators.alignment import Place
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.language.statements import statements

_SAYS = "The user says: "
"""Before a user's sentence, so that a judge knows whose "I" that is."""

# What a judge is shown of a conversation, to understand the question.
_SHOWN_TURNS, _SHOWN_CHARACTERS = 6, 600
_SELF_CONTAINED = 4


@dataclass
class Ground:
    """Texts that claims may rest on.

    Attributes:
        source: What they are.
        texts: As a judge sees them.
        ids: Under which id each is named in results.
        starts: Where each begins in what has that id: a judge may see a part of it.
        answers: Of what a user said, what the assistant had stated before: the user may repeat it.
    """

    source: SupportSource
    texts: list[str] = field(default_factory=list)
    ids: list[ChunkId] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)

    def add(self, text: str, chunk_id: ChunkId, start: int = 0) -> None:
        """Add a text."""
        self.texts.append(text)
        self.ids.append(chunk_id)
        self.starts.append(start)

    def named(self, place: Place) -> EvidenceSpan:
        """A place in one of its texts, by the text's id instead of its position."""
        start = self.starts[place.chunk]
        return EvidenceSpan(self.ids[place.chunk], max(0, place.start + start), place.end + start)


def turns_of(case: RAGTestCase, policy: ScoringPolicy) -> Sequence[tuple[int, Turn]]:
    """The turns that count, oldest first, with their positions in the case's history."""
    turns = list(enumerate(case.history))
    return turns[-policy.history_turns :] if policy.history_turns else ()


def earlier_grounds(case: RAGTestCase, policy: ScoringPolicy) -> Iterator[Ground]:
    """What claims may rest on beyond this turn's context, in the order in which it is asked.

    The chunks of earlier turns come at once, the latest first. What the user said comes message by
    message, the latest first, so that a correction goes before what it corrects. Nothing where the
    case has no history.
    """
    turns = turns_of(case, policy)
    chunks = Ground("earlier_turn")
    known = set(case.context_texts)
    for position, turn in reversed(turns):
        for chunk_id, text in zip(turn.chunk_ids(position), turn.context_texts, strict=True):
            if text.strip() and text not in known:
                known.add(text)
                chunks.add(text, chunk_id)
    if chunks.texts:
        yield chunks
    messages = [(f"history.{position}", turn) for position, turn in turns]
    messages.append(("query", Turn(role="user", text=case.query)))
    for at in reversed(range(len(messages)) if turns else ()):
        name, turn = messages[at]
        if turn.role == "assistant":
            continue
        said = Ground("user")
        for start, end in statements(turn.text):
            said.add(_SAYS + turn.text[start:end], name, start - len(_SAYS))
        if said.texts:
            said.answers = [
                each.text[start:end]
                for _, each in messages[:at]
                if each.role == "assistant"
                for start, end in statements(each.text)
            ]
            yield said


def question_of(case: RAGTestCase, judge: LLMJudge, policy: ScoringPolicy) -> str:
    """The question as a judge needs it to understand it: after what it refers to.

    A language model gets the conversation. For a judge that compares words it would drown the
    question: it gets the user's last question that says something by itself.
    """
    turns = [turn for _, turn in turns_of(case, policy)]
    if not turns:
        return case.query
    if identity_of(judge).kind == "llm":
        shown = (f"{turn.role}: {_shortened(turn.text)}" for turn in turns[-_SHOWN_TURNS:])
        return "\n".join(["Earlier in the conversation:", *shown, "The question now:", case.query])
    asked = [turn.text for turn in turns if turn.role == "user"]
    telling = (text for text in reversed(asked) if len(text.split()) >= _SELF_CONTAINED)
    before = next(telling, asked[-1] if asked else "")
    return f"{_shortened(before)}\n{case.query}" if before else case.query


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
