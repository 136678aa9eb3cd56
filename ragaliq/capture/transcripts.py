"""Conversations that are written out in a text, and the assistant's words in them.

The roles stand at the beginnings of lines, in the marks of a model's own format, or around messages
as JSON, XML and Python write them. Lines below a label belong to it up to what somebody else says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise, zip_longest

from ragaliq.capture.phrases import MarkedText, Owner

# A conversation that is written out, by its roles at the beginnings of lines.
_LABEL = re.compile(
    r"^[ \t>*-]*(?:message from )?"
    r"(?:(?P<model>(?:(?:ai|virtual) )?assistant|ai|chatbot|bot)|user|human|customer|system)"
    r"[ \t]*:[ \t]*",
    re.MULTILINE | re.IGNORECASE,
)
ASSISTANT_SAYS = re.compile(f"{_LABEL.pattern}(?P<words>[^\\n]+)", _LABEL.flags)
# Lines that begin another part: a label that stands alone or names a text that is shown or asked,
# a rule, a heading, a tag, a fence.
_NEXT_PART = re.compile(
    r"^[ \t]*(?:[^\n:]{1,80}:[ \t]*$|(?:[^\W\d]+ ){0,3}(?:contexts?|documents?|docs|sources?"
    r"|passages?|excerpts?|results?|observation|information|knowledge|facts|data|notes|question"
    r"|query|input|task):|[-=`*_]{3}|#|<)",
    re.MULTILINE | re.IGNORECASE,
)
_PARAGRAPH_WITH_LABEL = re.compile(r"\n[ \t]*\n[^\n:]{1,80}:[ \t]")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
# By the marks of a model's own format.
_MARK = re.compile(
    r"<\|?(?:im_start|start_header_id|start_of_turn)\|?>[ \t]*(?P<role>\w+)[ \t]*"
    r"(?:<\|end_header_id\|>)?|<\|(?P<tag>assistant|model|user|system)\|>|(?P<close>\[/INST\])"
    r"|^#{2,3}[ \t]*(?P<head>assistant|ai|response|user|human|instruction|input|system)[ \t]*:"
    r"|<\|?(?:im_end|eot_id|end_of_turn|end|endoftext)\|?>|</?s>|\[INST\]",
    re.MULTILINE | re.IGNORECASE,
)
_HEADING = re.compile(r"^#", re.MULTILINE)
# What opens and closes a message of the assistant's as JSON, XML or Python writes it.
_OPENING = re.compile(
    r"(?:AIMessage(?:Chunk)?\(content=|[\"'](?:role|type)[\"']:\s*[\"'](?:assistant|ai)[\"'],\s*"
    r"[\"']content[\"']:\s*|\([\"'](?:assistant|ai)[\"'],\s*)(?P<quote>[\"'])"
    r"|<(?:assistant|ai|message\s+(?:role|type)=[\"'](?:assistant|ai)[\"'])>",
    re.IGNORECASE,
)
_CLOSING = {
    '"': re.compile(r"\"(?=\s*[,})\]])"),
    "'": re.compile(r"'(?=\s*[,})\]])"),
    None: re.compile(r"</(?:assistant|ai|message)>", re.IGNORECASE),
}
ASSISTANT = frozenset({"ai", "assistant", "model", "chatbot", "bot", "agent"})
# Words before a turn that is written out, as labels or as JSON, XML and Python name its role.
_ROLES = ASSISTANT | {
    *("user", "human", "customer", "question", "q", "answer", "a"),
    *("humanmessage", "aimessage", "inst"),
}
# A single sentence that asks.
_ASKS = re.compile(r"[^\n.!?。！？]{1,400}[?？؟]")
# What opens a message of the user's in the forms above, and a question that is all of it.
_USER_ASKS = re.compile(
    r"(?:HumanMessage(?:Chunk)?\(content=[\"']"
    r"|[\"'](?:role|type)[\"']:\s*[\"'](?:user|human)[\"'],\s*[\"']content[\"']:\s*[\"']"
    r"|\([\"'](?:user|human)[\"'],\s*[\"']"
    r"|<(?:user|human|message\s+(?:role|type)=[\"'](?:user|human)[\"'])>"
    r"|<\|?(?:im_start|start_header_id|start_of_turn)\|?>[ \t]*user[ \t]*(?:<\|end_header_id\|>)?"
    rf"|<\|user\|>|\[INST\])\s*(?P<words>{_ASKS.pattern})(?=\s*[\"'<\[])",
    re.IGNORECASE,
)


def mark_transcript(text: MarkedText, *, is_sure: bool) -> list[str]:
    """Mark the assistant's words in a conversation that is written out; returns them, normalized.

    Args:
        text: The text.
        is_sure: Whether to mark only lines and parts that are surely the assistant's; otherwise the
            lines below them too, up to what somebody else says. Words with an owner keep it.
    """
    found = [match.span("words") for match in ASSISTANT_SAYS.finditer(text.text) if match["model"]]
    if not is_sure:
        found += _lines_below(text.text)
    found += _messages(text.text)
    marks = list(_MARK.finditer(text.text))
    for mark, following in zip_longest(marks, marks[1:]):
        role = (mark["role"] or mark["tag"] or mark["head"] or "").casefold()
        if mark["close"] or role in ASSISTANT or role == "response":
            end = following.start() if following else len(text.text)
            heading = _HEADING.search(text.text, mark.end(), end) if mark["head"] else None
            found.append((mark.end(), heading.start() if heading else end))
    marked = (text.mark_free(text.between(*ends), Owner.MODEL) for ends in found)
    return [words for words in marked if words]


def mark_questions(text: MarkedText) -> None:
    """Mark what users ask the assistant in a conversation that is written out."""
    found = [match.span("words") for match in _USER_ASKS.finditer(text.text)]
    for label, following in pairwise(_LABEL.finditer(text.text)):
        if following["model"] and not label["model"]:
            words = text.text[label.end() : following.start()].rstrip()
            if _ASKS.fullmatch(words):
                found.append((label.end(), label.end() + len(words)))
    for ends in found:
        text.mark_free(text.between(*ends), Owner.QUESTION)


def is_turn(text: MarkedText, place: slice) -> bool:
    """True if words are a whole text, follow a role's name as a whole line, or ask as one."""
    if place == slice(0, len(text.owners)):
        return True
    is_named = not _ROLES.isdisjoint(text.before(place, 2))
    return text.stands_alone(place) and (is_named or text.asks(place))


def _lines_below(text: str) -> Iterator[tuple[int, int]]:
    """Places of the assistant's words below the lines that say that they are."""
    labels = list(_LABEL.finditer(text))
    for label, following in zip_longest(labels, labels[1:]):
        if not label["model"]:
            continue
        line = text.find("\n", label.end())
        if line < 0:
            continue
        end = following.start() if following else len(text)
        parts = [_NEXT_PART.search(text, line, end)]
        if following is None:  # nobody says where the conversation ends
            parts.append(_PARAGRAPH_WITH_LABEL.search(text, line))
            parts += [] if any(parts) else [_BLANK_LINE.search(text, line)]
        yield line, min((part.start() for part in parts if part), default=end)


def _messages(text: str) -> Iterator[tuple[int, int]]:
    """Places of the assistant's messages as JSON, XML or Python writes them."""
    opening = _OPENING.search(text)
    while opening and (closing := _CLOSING[opening["quote"]].search(text, opening.end())):
        yield opening.end(), closing.start()
        opening = _OPENING.search(text, closing.end())
