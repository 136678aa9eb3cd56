"""Log of a run's events, and the case made from them.

An adapter records each event in a `RunLog`, which only appends, so that the request waits for
nothing and threads need no lock. The worker finds the context later: in the prompts that led to the
answer (`ragaliq.capture.evidence`), and by steps only if no prompt is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from math import inf
from sys import getsizeof
from typing import Any

from ragaliq.capture.calls import Call, FinalReply, final_reply
from ragaliq.capture.conversation import messages_before, turns_of_messages
from ragaliq.capture.events import (
    Answering,
    ByKey,
    CitedSources,
    Event,
    ModelCalled,
    Passages,
    Provided,
    Replied,
    Reranked,
    Retrieved,
    Searched,
    Step,
    StepGiven,
    StepReturned,
    TextPassed,
    ToolReturned,
    read_event,
    read_messages,
    read_passages,
    write_event,
    write_messages,
    write_passages,
)
from ragaliq.capture.evidence import Candidate, FoundContext, context_in_prompts
from ragaliq.capture.phrases import normalize
from ragaliq.capture.texts import (
    ANSWER_KEYS,
    CONTEXT_KEYS,
    NO_QUESTION_KEYS,
    Found,
    Message,
    Reader,
    models_words,
)
from ragaliq.core.citations import Citation, citations_in
from ragaliq.core.passages import Passage, context_chunks, json_safe
from ragaliq.core.test_case import CaseSources, RAGTestCase, Turn

_OF_HISTORY = frozenset({"chat_history", "history", "messages"})
# Keys of texts that are settings of a request or the conversation, not evidence.
_SETTING_KEYS = frozenset({*_OF_HISTORY, *NO_QUESTION_KEYS})
_LEAST_REPLY = 5  # spaces of a reply that a later run may repeat
_LEAST_SPACES = 2  # of a text that may be more than a setting
_OF_ANSWER = frozenset({"", *ANSWER_KEYS})  # spans show the only value of a step without its key
# Made once: `TextPassed | Replied` would be made for each event.
_OF_TEXT = (TextPassed, Replied)
# Checked once for each combination: there are few, and every run has one.
_sources = lru_cache(maxsize=256)(CaseSources)
_NOT_FOUND = Found("", "")
# Fields of a run that are plain data already, and lists.
_PLAIN = ("id", "keeps_turns", "is_conversation", "replaces", "has_fetched_texts")
_LISTED = ("question", "answer", "tags", "said_before", "rules")


class _MessageReader(Reader):
    """Reader of a conversation that came as plain data, whose messages are `Message` already."""

    def message(self, value: Any) -> Message | None:
        return value if isinstance(value, Message) else None


_AS_WRITTEN = _MessageReader()


@dataclass(slots=True, eq=False, repr=False)
class RunLog:
    """Log of one run's events, and its case once it has ended.

    Steps go by whatever id the framework gives them. Events come in the order in which they
    happened; those of one run may come from several threads.

    Attributes:
        id: The run's id.
        parents: Every step so far, in the order they began, with the step it is in; the run's own
            has none.
        keeps_turns: Whether the state may hold documents of earlier turns (a checkpointed thread).
        is_conversation: Whether messages before the question are earlier turns; otherwise they may
            be examples.
        question: The user's question, and its source.
        answer: The application's answer, and its source.
        passages: Chunks that the application itself added.
        replaces: Whether `passages` are the whole context; otherwise they follow those found.
        blocks: The content blocks of the message that is the answer, for the citations in them.
        tags: Free labels of the run.
        metadata: What the application says about the run: tenant, user, ...
        conversation_key: Key of its conversation, if the application gives it no name.
        remembered: Earlier turns of the conversation; only those that a model was shown count.
        said_before: Replies of models in earlier runs of the conversation, besides answers.
        had_errors: Whether something failed, and a retry, a fallback or a model recovered.
        has_fetched_texts: Whether the run only named documents, and their texts were fetched.
        rules: Names of the product-specific rules that were applied to its spans.
    """

    id: str = ""
    parents: dict[Step, Step | None] = field(default_factory=dict)
    keeps_turns: bool = False
    is_conversation: bool = False
    question: Found = _NOT_FOUND
    answer: Found = _NOT_FOUND
    passages: Passages | None = None
    replaces: bool = False
    blocks: object = None
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    conversation_key: str = ""
    remembered: Sequence[Turn] = ()
    said_before: Sequence[str] = ()
    had_errors: bool = False
    has_fetched_texts: bool = False
    rules: Sequence[str] = ()
    _citations: list[Citation] | None = None
    _found: FoundContext | None = None
    _conversation: tuple[Reader, Sequence[Any]] | None = None
    _events: list[Event] = field(default_factory=list)
    _weighed: dict[int, int] = field(default_factory=dict)
    _weighed_events: int = 0

    # Events

    def began(self, step: Step, parent: Step | None) -> None:
        """A step began; the run's own has no parent."""
        self.parents[step] = parent

    def step_given(self, step: Step, by_key: ByKey) -> None:
        """A step was given documents, as lists under keys; those elsewhere go by the key None."""
        if by_key:
            self._events.append(StepGiven(step, by_key))

    def step_returned(
        self,
        step: Step,
        passages: Passages | None = None,
        *,
        by_key: ByKey | None = None,
    ) -> None:
        """A plain step ended: a function retriever, a reranker, a fusion or a graph's node.

        Args:
            step: The step.
            passages: The documents it returned, where it returned a list of them and nothing else.
            by_key: The lists of documents in a state that it returned.
        """
        if passages is not None or by_key:
            self._events.append(StepReturned(step, passages, by_key))

    def text_passed(self, step: Step, text: str, key: Any = "", *, is_input: bool = False) -> None:
        """A step got or returned a text under a key; the key is empty if the text is the value."""
        self._events.append(TextPassed(step, text, key, is_input))

    def searched(self, step: Step, query: str = "") -> None:
        """A retriever began; models below it write queries, not answers."""
        self._events.append(Searched(step, query))

    def retrieved(self, step: Step, passages: Passages) -> None:
        """A retriever ended: its documents replace those of the retrievers inside it."""
        self._events.append(Retrieved(step, passages))

    def found_before(self, query: str, passages: Passages) -> None:
        """Plain code had searched before the run, and one of its models is shown the passages."""
        step = ("before", len(self._events))
        self._events[:0] = [Searched(step, query), Retrieved(step, passages)]

    def reranked(self, step: Step, passages: Passages, given: Passages = ()) -> None:
        """A reranker ended: what it let through replaces what it chose from."""
        self._events.append(Reranked(step, passages, given))

    def tool_returned(self, step: Step, passages: Passages) -> None:
        """A tool ended; documents that were fetched inside it count instead of its texts."""
        if passages:
            self._events.append(ToolReturned(step, passages))

    def answering(self, step: Step, passages: Passages) -> None:
        """A step began whose work it is to answer from exactly these passages."""
        self._events.append(Answering(step, passages))

    def model_called(self, step: Step, messages: Sequence[Message]) -> None:
        """A model was called with these messages; a completion's prompt is one of the user's."""
        self._events.append(ModelCalled(step, messages))

    def replied(self, step: Step, text: str, tool_arguments: Sequence[str] = ()) -> None:
        """A model replied: its text, maybe empty, and the texts in the arguments of its tool calls.

        Of a structured answer, the text is often empty, and an argument is the answer.
        """
        self._events.append(Replied(step, text, tool_arguments))

    def provided(self, step: Step, passages: Passages) -> None:
        """A model's provider found these passages for its reply."""
        if passages:
            self._events.append(Provided(step, passages))

    def independent_replies(self, replies: Mapping[Any, str]) -> Mapping[Any, str] | None:
        """Replies in an output that no other reply in it was made from; a person reads these.

        None if a reply was made of another one but does not reword it, such as a grade or a
        critique: then it is not known which one counts.
        """
        prompts: dict[str, str] = {}
        asked: dict[Step, str] = {}
        for event in self._events:
            if isinstance(event, ModelCalled):
                asked[event.step] = "\n".join(message.text for message in event.messages)
            elif isinstance(event, Replied):
                prompts[event.text] = asked.get(event.step, "")
        parts = {
            key: [each for each in replies.values() if each != text and each in prompts[text]]
            for key, text in replies.items()
        }
        used = {part for held in parts.values() for part in held}
        final = {key: text for key, text in replies.items() if text not in used}
        for key, text in final.items():
            if len(parts[key]) == 1 and not _share_words(parts[key][0], text):
                return None
        return final

    def answer_among_replies(
        self, reader: Reader, outputs: Any, *, question: str, last: str
    ) -> Found | None:
        """The reply that is the answer, of a run whose output does not say which.

        A run may return documents only, or a state in which nothing has been answered yet: then the
        last reply was a rewritten question or a grade.

        Args:
            reader: Reads the output.
            outputs: What the run returned.
            question: The user's question.
            last: The last reply; empty where it only called tools.
        """
        messages = reader.messages(outputs)
        final = reader.message(messages[-1]) if messages else None
        is_asked = final is not None and final.role == "user"
        # Graphs of several agents pass their reports on as messages of the user's.
        if final is not None and is_asked and self.has_reply(final.text):
            return Found(final.text, "output.messages")
        if not last or reader.document_list(outputs):
            return None
        if isinstance(outputs, Mapping):
            values = list(outputs.values())
            echoes = any(isinstance(v, str) and v.strip() == question for v in values)
            replies = {
                key: value
                for key, value in outputs.items()
                if isinstance(value, str)
                and value.strip()
                and value != question
                and self.has_reply(value)
            }
            if len(replies) > 1:
                return reader.answer_text(self.independent_replies(replies))
            is_state = is_asked or echoes or reader.context(outputs) is not None
            answers = [found.text for v in values if (found := reader.answer(v)) is not None]
            if is_state and last not in answers:
                return None
        elif is_asked:
            return None
        return Found(last, "reply")

    def final_reply(self) -> FinalReply:
        """The reply that the run ended with, where no output shows its answer."""
        events = list(self._events)
        found = [e.passages for e in events if isinstance(e, Retrieved | Reranked)]
        return final_reply(
            _calls(events, self.parents, ""),
            {passage.text for passages in found for passage in passages if passage.text},
        )

    def cited_sources(self, passages: Passages) -> None:
        """The run's own output names these as its sources; empty where it says there were none."""
        self._events.append(CitedSources(passages))

    def conversation_given(self, reader: Reader, messages: Sequence[Any]) -> None:
        """The run was called with these messages; the worker reads them later."""
        # A copy: applications add the answer to the list that they called with.
        self._conversation = reader, tuple(messages)

    # Result

    @property
    def size(self) -> int:
        """Bytes of the texts it holds, about; those that several events share count once."""
        size = getsizeof(self.question.text) + getsizeof(self.answer.text)
        for text in self.question.files:
            size += getsizeof(text)
        for passage in self.passages or ():
            size += getsizeof(passage.text)
        weighed = self._weighed
        events = self._events[self._weighed_events :]
        self._weighed_events += len(events)
        texts: list[str] = []
        for event in events:  # on the request path: as little as possible for each text
            if isinstance(event, _OF_TEXT):
                texts.append(event.text)
            elif isinstance(event, ModelCalled):
                for message in event.messages:
                    texts += message.texts + message.documents
            else:
                for passages in event.lists:
                    # What a retriever returned is what the next step was given.
                    if id(passages) not in weighed:
                        weighed[id(passages)] = 0
                        texts += [passage.text for passage in passages]
        weighed.update(zip(map(id, texts), map(len, texts), strict=True))
        return size + sum(weighed.values())

    @property
    def has_retrieved(self) -> bool:
        """True if the run searched for documents, got some to cite, or called a tool."""
        return any(
            event.is_search
            or (
                isinstance(event, ModelCalled)
                and any(message.documents or message.role == "tool" for message in event.messages)
            )
            for event in self._events
        )

    @property
    def has_asked(self) -> bool:
        """True if a model was called."""
        return any(isinstance(event, ModelCalled) for event in self._events)

    @property
    def was_given_text(self) -> bool:
        """True if a model was called, and was passed a text or a file that may be evidence."""
        return self.has_asked and (
            bool(self.question.files)
            or any(
                isinstance(event, TextPassed)
                and event.key not in _SETTING_KEYS
                and event.text.strip() != self.question.text.strip()
                and event.text.count(" ") >= _LEAST_SPACES
                for event in self._events
            )
        )

    def has_reply(self, text: str) -> bool:
        """True if a model said exactly this."""
        return any(isinstance(event, Replied) and event.text == text for event in self._events)

    def other_replies(self) -> list[str]:
        """Replies of models that say something, besides the answer."""
        texts = (event.text for event in list(self._events) if isinstance(event, Replied))
        return [
            text for text in texts if text.count(" ") >= _LEAST_REPLY and text != self.answer.text
        ]

    @property
    def query(self) -> str:
        """The user's question."""
        return self.question.text

    @property
    def response(self) -> str:
        """The application's answer."""
        return self.answer.text

    @property
    def lacks(self) -> str:
        """Reason why there is no case, `no_question` or `no_answer`; empty if there is one."""
        if not self.question.text.strip():
            return "no_question"
        return "" if models_words(self.answer.text).strip() else "no_answer"

    @property
    def found_context(self) -> FoundContext:
        """Context of the answer, each text once, in rank order, and the earlier conversation.

        It is searched on first use, which takes time.
        """
        if self._found is None:
            found = self._find(list(self._events))
            # The worker and a caller of `explain` may both be here: the first result is kept. Its
            # events are dropped only after that.
            if self._found is None:
                self._found = found
                self._events, self._conversation = [], None
        return self._found

    @property
    def is_context_found(self) -> bool:
        """True if the context has been found already."""
        return self._found is not None

    @property
    def sources(self) -> CaseSources:
        """Sources of question, context and answer."""
        return _sources(
            question=self.question.where,
            context=self.found_context.source,
            answer=self.answer.where,
            no_context=self.found_context.missing,
            has_fetched_texts=self.has_fetched_texts,
            rules=tuple(self.rules),
        )

    def to_case(self) -> RAGTestCase:
        """Build the case.

        Raises:
            pydantic.ValidationError: A field is of the wrong type; nothing is quoted.
        """
        found = self.found_context
        return RAGTestCase(
            id=self.id,
            query=self.question.text,
            context=context_chunks(found.passages),
            response=self.answer.text,
            prompt_context=found.prompt,
            history=list(found.history),
            citations=citations_in(self.blocks) if self._citations is None else self._citations,
            tags=list(self.tags),
            metadata=json_safe(self.metadata) if self.metadata else {},
            sources=self.sources,
        )

    def to_plain(self) -> dict[str, Any]:
        """Run as plain data for JSON, to send it to another process.

        It excludes the context, which `from_plain(...).to_case()` finds there.
        """
        steps = {step: number for number, step in enumerate(list(self.parents))}
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            **{name: [*getattr(self, name)] for name in _LISTED},
            "parents": [steps.get(parent, -1) for parent in list(self.parents.values())],
            "passages": None if self.passages is None else write_passages(self.passages),
            "citations": [citation.model_dump() for citation in citations_in(self.blocks)],
            "metadata": json_safe(self.metadata) if self.metadata else {},
            "conversation": write_messages(self._earlier_messages()),
            "remembered": [turn.model_dump(mode="json") for turn in self.remembered],
            "events": [write_event(event, steps) for event in list(self._events)],
        }

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> RunLog:
        """Restore a run from `to_plain`."""
        log = cls(**{name: data[name] for name in (*_PLAIN, *_LISTED, "metadata")})
        log.parents = {at: None if above < 0 else above for at, above in enumerate(data["parents"])}
        log.question, log.answer = Found(*data["question"]), Found(*data["answer"])
        if data["passages"] is not None:
            log.passages = read_passages(data["passages"])
        log.remembered = [Turn.model_validate(each) for each in data["remembered"]]
        log._citations = [Citation.model_validate(each) for each in data["citations"]]
        if data["conversation"]:
            log._conversation = _AS_WRITTEN, read_messages(data["conversation"])
        log._events = [read_event(each) for each in data["events"]]
        return log

    def _earlier_messages(self) -> list[Message]:
        """Conversation that the run was called with."""
        reader, values = self._conversation or (_AS_WRITTEN, ())
        return [message for value in values if (message := reader.message(value)) is not None]

    def _find(self, events: Sequence[Event]) -> FoundContext:
        question, answer = self.question.text, self.answer.text
        before = messages_before(self._earlier_messages(), question, files=self.question.files)
        earlier = turns_of_messages(before) or self.remembered
        passed = [event for event in events if isinstance(event, TextPassed)]
        seen = context_in_prompts(
            _calls(events, self.parents, normalize(answer)),
            _candidates(events),
            question,
            answer,
            queries=[event.query for event in events if isinstance(event, Searched)],
            earlier=earlier,
            transcripts=[
                event.text
                for event in passed
                if event.key in _OF_HISTORY
                and not any(file in event.text for file in self.question.files)
            ],
            files=self.question.files,
            texts=[event.text for event in passed if event.key not in _SETTING_KEYS],
            said_before=self.said_before,
            is_conversation=self.is_conversation,
        )
        found = seen or FoundContext((), missing="nothing_retrieved", history=earlier)
        if self.passages is not None and (self.replaces or seen is None):
            found = found._replace(passages=self.passages, source="application", missing="")
        elif self.passages:
            named = _distinct([*found.passages, *self.passages])
            source = found.source if found.passages else "application"
            found = found._replace(passages=named, source=source, missing="")
        elif found.missing:
            # A step that is there to answer from documents shows them to its model, in any form.
            passages: Passages = [
                passage
                for event in events
                if isinstance(event, Answering)
                for passage in event.passages
            ]
            source = "given" if passages else found.source
            if seen is None and not passages:
                source, passages = self._by_steps(events, normalize(answer))
            missing = found.missing
            fetched = [e.passages for e in events if isinstance(e, Retrieved | ToolReturned)]
            if source == "output" or (fetched and not any(fetched)):
                missing = "nothing_found"
            found = found._replace(
                passages=_distinct(passages), source=source, missing="" if passages else missing
            )
        provided = [p for event in events if isinstance(event, Provided) for p in event.passages]
        if not provided or self.replaces:
            return found
        return found._replace(
            passages=_distinct([*found.passages, *provided]),
            source=found.source if found.passages else "reply",
            missing="",
        )

    def _by_steps(self, events: Sequence[Event], answer: str) -> tuple[str, Passages]:
        """Context by the run's steps, with its source: if no prompt is known."""
        given: dict[Step, Passages] = {}
        answering: Step | None = None
        source, fetched = _fetched(events, self.parents, answer)
        for event in events:
            # The state of a conversation also holds the documents of earlier turns.
            if isinstance(event, CitedSources) and (fetched or not self.keeps_turns):
                return "output", event.passages
            if isinstance(event, StepGiven):
                given[event.step] = [each for held in event.by_key.values() for each in held]
            elif isinstance(event, TextPassed) and not event.is_input and answering is None:
                answering = event.step if normalize(event.text) == answer else None
        # The documents among the inputs of the step that gave the answer, or of one around it.
        around = _around(answering, self.parents)
        handed = next((given[step] for step in around if given.get(step)), ())
        return ("given", handed) if handed else (source, fetched)


def to_case(case: RAGTestCase | RunLog) -> RAGTestCase:
    """Return a case; a log is built first, see `RunLog.to_case`."""
    return case.to_case() if isinstance(case, RunLog) else case


def _share_words(text: str, other: str) -> bool:
    """True if half the words of the shorter text occur in the other."""
    some, others = set(normalize(text).split()), set(normalize(other).split())
    return 2 * len(some & others) >= min(len(some), len(others))


def _calls(events: Sequence[Event], parents: Mapping[Step, Step | None], answer: str) -> list[Call]:
    """Model calls of the run, in the order of their beginnings."""
    # A model below a retriever writes queries, unless it answers there.
    is_search = {
        event.step: isinstance(event, Searched)
        for event in events
        if isinstance(event, Searched | Answering)
    }
    tools = {
        event.step: event.passages[0].text
        for event in events
        if isinstance(event, ToolReturned) and len(event.passages) == 1
    }
    answered = {
        event.step
        for event in events
        if isinstance(event, TextPassed)
        and not event.is_input
        and event.key in _OF_ANSWER
        and parents.get(event.step) is not None  # all of the run is in its own step
        and normalize(event.text) == answer
    }
    calls: dict[Step, Call] = {}
    for at, event in enumerate(events):
        if isinstance(event, ModelCalled):
            around = list(_around(event.step, parents))
            calls[event.step] = Call(
                event.messages,
                None,
                began=at,
                is_for_retriever=next(
                    (is_search[each] for each in around if each in is_search), False
                ),
                for_tool=next((tools[each] for each in around if each in tools), ""),
                to_answer=next((n for n, each in enumerate(around) if each in answered), inf),
            )
        elif isinstance(event, Replied) and event.step in calls:
            asked = calls[event.step]
            calls[event.step] = asked._replace(
                reply=event.text, tool_arguments=event.tool_arguments, ended=at
            )
    return list(calls.values())


def _candidates(events: Sequence[Event]) -> list[Candidate]:
    """Passages that may be chunks, in the order of their events."""
    found: list[Candidate] = []
    taken: set[int] = set()  # what a retriever returned is what the next step was given
    last = max((at for at, event in enumerate(events) if isinstance(event, ModelCalled)), default=0)
    for at, event in enumerate(events):
        if isinstance(event, TextPassed) and event.key in CONTEXT_KEYS:
            found.append(Candidate(Passage(event.text), at, is_all=True))
        for passages in event.lists:
            if id(passages) in taken or isinstance(event, Provided):
                continue
            taken.add(id(passages))
            is_only = isinstance(event, ToolReturned) and len(passages) == 1
            if is_only and at > last:
                continue  # no model was shown it, though its words may be in a prompt
            for each in passages:
                is_all = is_only and each.id is None and not each.metadata
                found.append(Candidate(each, at, isinstance(event, Retrieved), is_all))
    return found


def _around(step: Step | None, parents: Mapping[Step, Step | None]) -> Iterator[Step]:
    """A step and all enclosing ones."""
    while step is not None:
        yield step
        step = parents.get(step)


def _distinct(passages: Passages) -> list[Passage]:
    first: dict[str, Passage] = {}
    for passage in passages:
        first.setdefault(passage.text, passage)
    return list(first.values())


def _fetched(
    events: Sequence[Event], parents: Mapping[Step, Step | None], answer: str
) -> tuple[str, Passages]:
    """Documents that retrievers, tools and other steps fetched, with the kinds of these steps.

    A reranker's documents replace those that it was given, and a retriever's those of the steps
    inside it. A tool or a step that fetched documents inside counts by these.
    """
    searches = {event.step for event in events if isinstance(event, Retrieved)}
    fetching: set[Step] = set()
    found: dict[Any, tuple[str, Passage]] = {}  # by text and id: rerankers change scores
    given: dict[Step, ByKey] = {}
    last = max((at for at, event in enumerate(events) if isinstance(event, Replied)), default=-1)
    for at, event in enumerate(events):
        if isinstance(event, StepGiven):
            given[event.step] = event.by_key
        if not isinstance(event, Retrieved | Reranked | ToolReturned | StepReturned):
            continue
        step, *around = _around(event.step, parents)
        is_search = isinstance(event, Retrieved | Reranked)
        if not searches.isdisjoint(around) or (step in fetching and not is_search):
            continue
        kind, passages = "retriever", event.passages or ()
        if isinstance(event, Reranked):
            for each in event.given:
                found.pop(each[:2], None)
        elif isinstance(event, StepReturned):
            known = {each[:2] for held in given.get(step, {}).values() for each in held}
            listed = chain.from_iterable((event.by_key or {}).values())
            kind, passages = "step", [each for each in listed if each[:2] not in known]
        elif isinstance(event, ToolReturned):
            kind = "tool"
            if at > last:  # no model gave the answer
                passages = [each for each in passages if normalize(each.text) != answer]
        if passages:
            fetching.update(around)
        found |= {each[:2]: (kind, each) for each in passages}
    kinds = sorted({kind for kind, _ in found.values()})
    return ", ".join(kinds), [passage for _, passage in found.values()]
