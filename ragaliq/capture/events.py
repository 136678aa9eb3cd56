"""Events of a run as plain values: written by adapters, read by the search for evidence."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast, get_args

from ragaliq.capture.texts import Message
from ragaliq.core.passages import Passage, json_safe

Step: TypeAlias = Hashable
Passages: TypeAlias = Sequence[Passage]
ByKey: TypeAlias = Mapping[Any, Passages]


class ModelCalled(NamedTuple):
    """A model was called with these messages."""

    step: Step
    messages: Sequence[Message]


class Replied(NamedTuple):
    """A model replied.

    Attributes:
        text: The reply; may be empty.
        tool_arguments: Texts in the arguments of the tools that it called.
    """

    step: Step
    text: str
    tool_arguments: Sequence[str] = ()


class Searched(NamedTuple):
    """A retriever began with a query."""

    step: Step
    query: str


class Retrieved(NamedTuple):
    """A retriever ended with these documents."""

    step: Step
    passages: Passages


class Reranked(NamedTuple):
    """A reranker kept these passages of those it was given."""

    step: Step
    passages: Passages
    given: Passages


class ToolReturned(NamedTuple):
    """A tool ended with these texts or documents."""

    step: Step
    passages: Passages


class StepGiven(NamedTuple):
    """A step was given lists of documents, by key."""

    step: Step
    by_key: ByKey


class StepReturned(NamedTuple):
    """A step returned documents (`passages`), or a state that holds lists of them (`by_key`)."""

    step: Step
    passages: Passages | None
    by_key: ByKey | None


class TextPassed(NamedTuple):
    """A step got or returned a text under a key; the key is empty if the text is the value.

    It may be a context, the answer, or a text of the application in a prompt without documents.
    """

    step: Step
    text: str
    key: Any
    is_input: bool = False


class Answering(NamedTuple):
    """A step began that answers from exactly these passages."""

    step: Step
    passages: Passages


class Provided(NamedTuple):
    """A model's provider searched for its reply and found these passages; they are in no prompt."""

    step: Step
    passages: Passages


class CitedSources(NamedTuple):
    """The run's output names these as its sources."""

    passages: Passages


Event: TypeAlias = (
    ModelCalled
    | Replied
    | Searched
    | Retrieved
    | Reranked
    | ToolReturned
    | StepGiven
    | StepReturned
    | TextPassed
    | Answering
    | Provided
    | CitedSources
)


# Plain data, which JSON carries to another process


def write_event(event: Event, steps: Mapping[Step, int]) -> list[Any]:
    """An event as plain data; steps become their numbers."""
    written: list[Any] = [type(event).__name__]
    for name, value in zip(event._fields, event, strict=True):
        if name == "step":
            written.append(steps.get(value, -1))
        else:
            write, _ = _FORMS.get(name, _TEXT)
            written.append(None if value is None else write(value))
    return written


def read_event(written: Sequence[Any]) -> Event:
    """The event that `write_event` wrote."""
    kind = _KINDS[written[0]]
    values = [
        value if value is None or name == "step" else _FORMS.get(name, _TEXT)[1](value)
        for name, value in zip(kind._fields, written[1:], strict=True)
    ]
    return cast("Event", kind(*values))


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


_KINDS: dict[str, Any] = {kind.__name__: kind for kind in get_args(Event)}
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
