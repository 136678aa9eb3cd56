"""Searches and model calls of plain code, outside chains and engines.

They belong together if they share a task or thread and the documents occur in the prompt.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from sys import getsizeof

from ragaliq.capture.phrases import ENDS, NEAR, OPENS, is_telling, normalize
from ragaliq.capture.texts import ASKS, Found, Message
from ragaliq.core.passages import Passage

LONE_CALL = (
    "a model is called by plain code and is shown nothing that a retriever found in the same task "
    "or thread, or no model is shown what a retriever found: both are counted not_rag. To have "
    "them scored, decorate the function around search and call with handler.trace"
)
_MOST_SEARCHES = 8
_LABELLED = re.compile(
    r"\s*(?:(?:user |customer )?(?:question|query|frage|pregunta|domanda)|user|human)\s*[:：]",
    re.IGNORECASE,
)
# Such as "Tenant:".
_SPEAKER = re.compile(r"\s*[^\W\d_]+(?: [^\W\d_]+)?\s*[:：]")


@dataclass(eq=False)
class Search:
    """A retriever's search outside any chain or engine: the start of a run if a model uses it.

    If a model called in the same task or thread is shown its passages, the two make one run.
    Until then a `RunRegistry` keeps it, as a `FollowedRun`. It is noted when it begins: in
    asynchronous code its end is reported in another context.

    Attributes:
        query: The text it looks for.
        key: The id of its step.
        unused: Called if no model is shown what it found.
        passages: The passages it found, once it has ended.
        started: Time when it began; the registry drops old ones.
        closed: Whether it was used or dropped; the registry sets it.
    """

    query: str
    key: Hashable = None
    unused: Callable[[], None] = lambda: None
    passages: Sequence[Passage] = ()
    started: float = field(default_factory=time.monotonic)
    closed: bool = False

    @property
    def steps(self) -> tuple[Hashable]:
        """Its only step."""
        return (self.key,)

    @property
    def size(self) -> int:
        """Bytes of the texts it found, about."""
        return sum(getsizeof(passage.text) for passage in self.passages)

    def discard(self, reason: str) -> None:  # noqa: ARG002 - as a registry calls it
        """Report that no model was shown its passages."""
        self.unused()


_SEARCHES: ContextVar[tuple[Search, ...]] = ContextVar("ragaliq_searches", default=())


def note_search(search: Search) -> None:
    """Remember a search of this task or thread; the latest few are kept."""
    _SEARCHES.set((*_SEARCHES.get(), search)[-_MOST_SEARCHES:])


def searches_shown(messages: Sequence[Message]) -> list[Search]:
    """Searches of this task or thread with a passage in a model's prompt."""
    texts = [text for message in messages for text in (*message.texts, *message.documents)]
    return [
        search
        for search in _SEARCHES.get()
        if any(passage.text in text for passage in search.passages for text in texts)
    ]


def question_shown(messages: Sequence[Message], searches: Sequence[Search]) -> Found | None:
    """Question in a prompt of plain code: the search query, or the line that asks."""
    asked = [message for message in messages if message.role == "user"]
    text = asked[-1].text if asked else ""
    rest = without_texts(text, (each.text for search in searches for each in search.passages))
    queries = [query for search in reversed(searches) if (query := search.query.strip())]
    if found := next((query for query in queries if asks_with(rest, query)), ""):
        return Found(found, "search")
    if rest == text:  # the passages are in other messages
        return Found(text.strip(), "prompt") if text.strip() else None
    lines = [line for line in rest.splitlines() if line.strip()]
    for line in reversed(lines):
        if (label := _LABELLED.match(line)) and line[label.end() :].strip():
            return Found(line[label.end() :].strip(), "prompt")
    for line in reversed(lines):
        if line.rstrip().endswith(ASKS):
            return Found(_SPEAKER.sub("", line, count=1).strip() or line.strip(), "prompt")
    return next((Found(query, "search") for query in queries if query in text), None)


def without_texts(prompt: str, texts: Iterable[str]) -> str:
    """Prompt without the texts of passages in it; a word or two may be the question's as well."""
    for text in texts:
        if not is_telling(normalize(text)):
            continue
        prompt = prompt.replace(text, "\n")
    return prompt


def asks_with(text: str, query: str) -> bool:
    """True if a query is the question of a prompt, not only some words of it."""
    if query.endswith(ASKS):
        return query in text
    for found in re.finditer(re.escape(query), text):
        first, last = found.span()
        before = text[max(0, first - NEAR) : first].rstrip(" \t*")[-1:]
        after = text[last : last + NEAR].lstrip(" \t*.")[:1]
        if before in OPENS and after in ENDS:
            return True
    return False
