"""Events of a run as plain values: written by adapters, read by the search for evidence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

from ragaliq.capture.texts import Message
from ragaliq.core.passages import Passage, json_safe

Step: TypeAlias = Hashable
Passages: TypeAlias = Sequence[Passage]
ByKey: TypeAlias = Mapping[Any, Passages]


@dataclass(slots=True, eq=False)
class Event:
    """Event of a run.

    Made on the request path, a dozen for each request: not a named tuple or a frozen class, which
    take twice as long or more to make.
    """

    is_search: ClassVar[bool] = False
    """True for an event of a run that looked for evidence."""

    @property
    def lists(self) -> Collection[Passages]:
        """Lists of passages in it."""
        return ()


@dataclass(slots=True, eq=False)
class ModelCalled(Event):
    """A model was called with these messages."""

    step: Step
    messages: Sequence[Message]


@dataclass(slots=True, eq=False)
class Replied(Event):
    """A model replied.

    Attributes:
        text: The reply; may be empty.
        tool_arguments: Texts in the arguments of the tools that it called.
    """

    step: Step
    text: str
    tool_arguments: Sequence[str] = ()


@dataclass(slots=True, eq=False)
class Searched(Event):
    """A retriever began with a query."""

    is_search = True

    step: Step
    query: str


@dataclass(slots=True, eq=False)
class _OfPassages(Event):
    """Event about one list of passages."""

    is_search = True

    step: Step
    passages: Passages

    @property
    def lists(self) -> Collection[Passages]:
        """See `Event`."""
        return (self.passages,)


@dataclass(slots=True, eq=False)
class Retrieved(_OfPassages):
    """A retriever ended with these documents."""


@dataclass(slots=True, eq=False)
class ToolReturned(_OfPassages):
    """A tool ended with these texts or documents."""


@dataclass(slots=True, eq=False)
class Answering(_OfPassages):
    """A step began that answers from exactly these passages."""


@dataclass(slots=True, eq=False)
class Provided(_OfPassages):
    """A model's provider searched for its reply and found these passages; they are in no prompt."""


@dataclass(slots=True, eq=False)
class CitedSources(Event):
    """The run's output names these as its sources."""

    is_search = True

    passages: Passages

    @property
    def lists(self) -> Collection[Passages]:
        """See `Event`."""
        return (self.passages,)


@dataclass(slots=True, eq=False)
class Reranked(_OfPassages):
    """A reranker kept these passages of those it was given."""

    given: Passages

    @property
    def lists(self) -> Collection[Passages]:
        """See `Event`."""
        return (self.passages, self.given)


@dataclass(slots=True, eq=False)
class StepGiven(Event):
    """A step was given lists of documents, by key."""

    step: Step
    by_key: ByKey

    @property
    def lists(self) -> Collection[Passages]:
        """See `Event`."""
        return self.by_key.values()


@dataclass(slots=True, eq=False)
class StepReturned(Event):
    """A step returned documents (`passages`), or a state that holds lists of them (`by_key`)."""

    step: Step
    passages: Passages | None
    by_key: ByKey | None

    @property
    def lists(self) -> Collection[Passages]:
        """See `Event`."""
        return (self.by_key or {}).values() if self.passages is None else (self.passages,)


@dataclass(slots=True, eq=False)
class TextPassed(Event):
    """A step got or returned a text under a key; the key is empty if the text is the value.

    It may be a context, the answer, or a text of the application in a prompt without documents.
    """

    step: Step
    text: str
    key: Any
    is_input: bool = False


# Plain data, which JSON carries to another process


def write_event(event: Event, steps: Mapping[Step, int]) -> list[Any]:
    """An event as plain data; steps become their numbers."""
    written: list[Any] = [type(event).__name__]
    for name, (write, _) in _FIELDS[type(event).__name__]:
        value = getattr(event, name)
        if name == "step":
            written.append(steps.get(value, -1))
        else:
            written.append(None if value is None else write(value))
    return written


def read_event(written: Sequence[Any]) -> Event:
    """The event that `write_event` wrote."""
    kind, *values = written
    return _KINDS[kind](
        *(
            value if value is None or name == "step" else read(value)
            for (name, (_, read)), value in zip(_FIELDS[kind], values, strict=True)
        )
    )


def write_messages(messages: Iterable[Message]) -> list[Any]:
    """Messages as plain data, without what tools kept."""
    return [[each.role, [*each.texts], each.is_call, [*each.documents]] for each in messages]


def read_messages(written: Iterable[Sequence[Any]]) -> list[Message]:
    """The messages that `write_messages` wrote."""
    return [
        Message(role, tuple(texts), is_call, documents=tuple(documents))
        for role, texts, is_call, documents in written
    ]


def write_passages(passages: Passages) -> list[list[Any]]:
    """Passages as plain data."""
    return [
        [text, own_id, score, json_safe(metadata) if metadata else None, shown_as]
        for text, own_id, score, metadata, shown_as in passages
    ]


def read_passages(written: Sequence[Sequence[Any]]) -> list[Passage]:
    """The passages that `write_passages` wrote."""
    return [Passage(*each) for each in written]


_KINDS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        ModelCalled,
        Replied,
        Searched,
        Retrieved,
        Reranked,
        ToolReturned,
        StepGiven,
        StepReturned,
        TextPassed,
        Answering,
        Provided,
        CitedSources,
    )
}
_TEXT: tuple[Callable[[Any], Any], Callable[[Any], Any]] = str, str
_PASSAGES = write_passages, read_passages
# How fields other than texts are written and read.
_FORMS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "messages": (write_messages, read_messages),
    "passages": _PASSAGES,
    "given": _PASSAGES,
    "by_key": (
        lambda by_key: [[str(key), write_passages(held)] for key, held in by_key.items()],
        lambda by_key: {key: read_passages(held) for key, held in by_key},
    ),
    "tool_arguments": (list, list),
    "is_input": (bool, bool),
}
_FIELDS = {
    name: [(field.name, _FORMS.get(field.name, _TEXT)) for field in fields(kind)]
    for name, kind in _KINDS.items()
}
