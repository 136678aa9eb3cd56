"""What happens in a run, as plain values: the language between translators and the search."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ragaliq.capture.texts import Message
from ragaliq.core.passages import Passage

Step: TypeAlias = Hashable
Passages: TypeAlias = Sequence[Passage]
ByKey: TypeAlias = Mapping[Any, Passages]


class ModelCalled(NamedTuple):
    """A model was called with these messages."""

    step: Step
    messages: Sequence[Message]


class Replied(NamedTuple):
    """A model replied: its text, and the texts in the arguments of the tools that it called."""

    step: Step
    text: str
    also: Sequence[str] = ()


class Searched(NamedTuple):
    """A retriever began with a query."""

    step: Step
    query: str


class Retrieved(NamedTuple):
    """A retriever ended with these documents."""

    step: Step
    passages: Passages


class Reranked(NamedTuple):
    """A reranker let these passages through, of those that it was given."""

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
    """A step returned documents, or a state that holds lists of them by key."""

    step: Step
    passages: Passages | None
    by_key: ByKey | None


class TextPassed(NamedTuple):
    """A step was given, or returned, a text under a key; by itself, the key is empty."""

    step: Step
    text: str
    key: Any


class Answering(NamedTuple):
    """A step began whose work it is to answer from these passages."""

    step: Step
    passages: Passages


class Failed(NamedTuple):
    """A step failed."""

    step: Step


class CitedSources(NamedTuple):
    """The run's own output names these as its sources."""

    passages: Passages


class ConversationOutput(NamedTuple):
    """The run's output is a conversation, in which tools said this in this turn."""

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
    | Failed
    | CitedSources
    | ConversationOutput
)
