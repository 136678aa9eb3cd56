"""Evidence beyond the chunks: the rest of the prompt, and the conversation before the question.

A claim is checked against this turn's chunks first, then the rest of the prompt, then the chunks of
earlier turns, then the user's statements. An assistant's statements are never evidence: one
invention would support the next. Neither is a user's repetition of them, nor what a user asks or
only supposes ("I thought refunds take 30 days").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.test_case import ChunkId, RAGTestCase, Turn
from ragaliq.errors import DatasetError
from ragaliq.evaluators.alignment import EvidenceSource
from ragaliq.judges.base import LLMJudge, identity_of
from ragaliq.judges.language.statements import statements

_PARAGRAPH = re.compile(r"\S(?:.*\S)?(?:[^\S\n]*\n[^\S\n]*\S(?:.*\S)?)*")

_SAYS = "The user says: "
"""Before a user's sentence, so that a judge knows whose "I" that is."""

# Most turns of a conversation, and characters of each, that a judge gets with the question.
_SHOWN_TURNS, _SHOWN_CHARACTERS = 6, 600
_SELF_CONTAINED = 4


def turns_of(case: RAGTestCase, policy: ScoringPolicy) -> Sequence[tuple[int, Turn]]:
    """Turns that the policy includes, oldest first, with their positions in the history."""
    turns = list(enumerate(case.history))
    return turns[-policy.history_turns :] if policy.history_turns else ()


class KnownContext(NamedTuple):
    """Kinds of context that a case has, as far as its policy uses them.

    Attributes:
        chunks: Chunks of this turn.
        earlier: Chunks of earlier turns.
        prompt: The rest of the prompt.
    """

    chunks: bool
    earlier: bool
    prompt: bool


def known_context(case: RAGTestCase, policy: ScoringPolicy) -> KnownContext:
    """Kinds of context that a case has; white space is none.

    Raises:
        DatasetError: It has no chunks, and the policy treats that as an error.
    """
    earlier = (text for _, turn in turns_of(case, policy) for text in turn.context_texts)
    known = KnownContext(
        chunks=case.has_context,
        earlier=any(text.strip() for text in earlier),
        prompt=policy.uses_prompt and bool(case.prompt_context.strip()),
    )
    if policy.empty_context == "error" and not (known.chunks or known.earlier):
        raise DatasetError(
            f"case {case.id!r} has no context, which policy {policy.name!r} does not allow; "
            "give it context or choose another policy"
        )
    return known


def prompt_source(case: RAGTestCase, policy: ScoringPolicy) -> EvidenceSource | None:
    """Rest of the prompt as evidence, split into paragraphs; None if there is none.

    As one text, the words of a claim could be found anywhere in it.
    """
    paragraphs = list(_PARAGRAPH.finditer(case.prompt_context)) if policy.uses_prompt else []
    if not paragraphs:
        return None
    return EvidenceSource(
        [found[0] for found in paragraphs],
        kind="prompt",
        ids=["prompt"] * len(paragraphs),
        starts=[found.start() for found in paragraphs],
    )


def earlier_sources(case: RAGTestCase, policy: ScoringPolicy) -> Iterator[EvidenceSource]:
    """Evidence of earlier turns, in the order of precedence.

    The chunks of all earlier turns come together, the latest first. A user's messages come one by
    one, the latest first, so that a correction precedes the statement it corrects.
    """
    turns = turns_of(case, policy)
    own, chunks = set(case.context_texts), dict[str, ChunkId]()
    for position, turn in reversed(turns):
        for chunk_id, text in zip(turn.chunk_ids(position), turn.context_texts, strict=True):
            if text.strip() and text not in own:
                chunks.setdefault(text, chunk_id)
    if chunks:
        yield EvidenceSource([*chunks], kind="earlier_turn", ids=[*chunks.values()])
    messages = [(f"history.{position}", turn) for position, turn in turns]
    messages.append(("query", Turn(role="user", text=case.query)))
    for at in reversed(range(len(messages)) if turns else ()):
        name, turn = messages[at]
        said = [*statements(turn.text)] if turn.role == "user" else []
        if said:
            yield EvidenceSource(
                [_SAYS + turn.text[start:end] for start, end in said],
                kind="user",
                ids=[name] * len(said),
                starts=[start - len(_SAYS) for start, _ in said],
                answers=[
                    each.text[start:end]
                    for _, each in messages[:at]
                    if each.role == "assistant"
                    for start, end in statements(each.text)
                ],
            )


def question_of(case: RAGTestCase, judge: LLMJudge, policy: ScoringPolicy) -> str:
    """Question with the context that a judge needs to understand it.

    A language model gets the conversation. It would drown the question for a judge that compares
    words: that judge gets the user's last self-contained question.
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
