"""What one run of an application held, in the order in which it happened, and what to make of it.

A translator tells a `RunLog` of each event as it comes; that only appends, so that the request
waits for nothing and threads need no lock. `find` reads the log where there is time: by the
prompt of the model that answered (`shown`), and only where no prompt is to be seen, by steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ragaliq.capture.shown import Call, Candidate, shown, words
from ragaliq.capture.texts import ANSWER_KEYS, CONTEXT_KEYS, QUESTION_KEYS, Message, distinct
from ragaliq.core.draft import FoundContext, Passage

__all__ = ["RunLog"]

Step = Hashable
# Strings under these keys are no context, whatever stands in the prompt.
_NO_CONTEXT = frozenset((*QUESTION_KEYS, *ANSWER_KEYS, "chat_history", "history", "messages"))


class RunLog:
    """The events of one run.

    Steps go by whatever id the framework gives them. Events come in the order in which they
    happened; those of one run may come from several threads.

    Args:
        root: The run's own step.

    Attributes:
        parents: Every step so far, in the order they began, with the step it is in.
        size: Characters of the texts it holds, those that several events share counted once.
        keeps_turns: Whether the state may hold documents of earlier turns (a checkpointed thread).
    """

    __slots__ = ("_events", "_kept", "keeps_turns", "parents", "size")

    def __init__(self, root: Step) -> None:
        self.parents: dict[Step, Step | None] = {root: None}
        self.size = 0
        self.keeps_turns = False
        self._events: list[tuple[Any, ...]] = []
        self._kept: set[int] = set()  # texts by identity: states go through every step

    # What happened

    def began(self, step: Step, parent: Step | None) -> None:
        """A step began."""
        self.parents[step] = parent

    def given(self, step: Step, by_key: Mapping[Any, Sequence[Passage]]) -> None:
        """A step was given documents, as lists under keys; those elsewhere go by the key None."""
        if by_key:
            self._events.append(("given", step, by_key))
            for passages in by_key.values():
                self._weigh(passages)

    def returned(
        self,
        step: Step,
        passages: Sequence[Passage] | None = None,
        *,
        by_key: Mapping[Any, Sequence[Passage]] | None = None,
        follows: bool = False,
    ) -> None:
        """A plain step ended: a function retriever, a reranker, a fusion or a graph's node.

        Args:
            step: The step.
            passages: The documents it returned, where it returned a list of them and nothing else.
            by_key: The lists of documents in a state that it returned.
            follows: Whether it is a later step of a sequence: what it makes of documents replaces
                what the sequence fetched.
        """
        if passages is not None or by_key:
            self._events.append(("returned", step, passages, by_key, follows))
            self._weigh(passages or ())
            for each in (by_key or {}).values():
                self._weigh(each)

    def said(self, step: Step, text: str, key: Any = "") -> None:
        """A step was given, or returned, a text under a key; by itself, the key is empty."""
        if id(text) not in self._kept:
            self._kept.add(id(text))
            self.size += len(text)
            self._events.append(("said", step, text, key))

    def retrieving(self, step: Step) -> None:
        """A retriever began; models below it write queries, not answers."""
        self._events.append(("retrieving", step))

    def retrieved(self, step: Step, passages: Sequence[Passage]) -> None:
        """A retriever ended: its documents replace those of the retrievers inside it."""
        self._events.append(("retrieved", step, passages))
        self._weigh(passages)

    def reranked(
        self, step: Step, passages: Sequence[Passage], given: Sequence[Passage] = ()
    ) -> None:
        """A reranker ended: what it let through replaces what it chose from."""
        self._events.append(("reranked", step, passages, given))
        self._weigh(passages)

    def told(self, step: Step, passages: Sequence[Passage]) -> None:
        """A tool ended; its texts count unless it fetched documents: those count then."""
        if passages:
            self._events.append(("told", step, passages))
            self._weigh(passages)

    def failed(self, step: Step) -> None:
        """A step failed: a retry or a fallback answers without what was fetched inside it."""
        self._events.append(("failed", step))

    def answering(self, step: Step, passages: Sequence[Passage]) -> None:
        """A step began whose work it is to answer from exactly these passages."""
        self._events.append(("answering", step, passages))
        self._weigh(passages)

    def asked(self, step: Step, messages: Sequence[Message]) -> None:
        """A model was called with these messages; a completion's prompt is one of the user's."""
        self._events.append(("asked", step, messages))
        for message in messages:
            for text in message.texts:
                if id(text) not in self._kept:
                    self._kept.add(id(text))
                    self.size += len(text)

    def replied(self, step: Step, text: str, also: Sequence[str] = ()) -> None:
        """A model replied.

        Args:
            step: The call.
            text: Its text; may be empty.
            also: The texts in the arguments of tools that it called.
        """
        self._events.append(("replied", step, text, also))
        self.size += len(text)

    def named(self, passages: Sequence[Passage]) -> None:
        """The run's own output names these as its sources; empty where it says there were none."""
        self._events.append(("named", None, passages))
        self._weigh(passages)

    def turn(self, passages: Sequence[Passage]) -> None:
        """The run's output is a conversation, in which tools said this in this turn."""
        if passages:
            self._events.append(("turn", None, passages))

    def adopt(self, other: RunLog, step: Step) -> None:
        """What was taken for a run of its own turned out to be a part of this one's step."""
        for below, parent in list(other.parents.items()):
            self.parents[below] = step if parent is None else parent
        self._events += other._events
        self._kept |= other._kept
        self.size += other.size

    def _weigh(self, passages: Iterable[Passage]) -> None:
        # By identity: what is kept is a reference, and what is kept keeps its identity.
        for passage in passages:
            if id(passage.text) not in self._kept:
                self._kept.add(id(passage.text))
                self.size += len(passage.text)

    # What it amounts to

    @property
    def has_retrieved(self) -> bool:
        """Whether documents were looked for, or a tool was asked, with whatever success."""
        return any(event[0] in _SEARCHES for event in self._events)

    def find(self, question: str, answer: str) -> FoundContext:
        """The context of an answer, each text once, in rank order."""
        events = list(self._events)
        seen = shown(_calls(events, self.parents), _candidates(events), question, answer)
        if seen is not None and seen.passages:
            return seen
        # A step that is there to answer from documents shows them to its model, in whatever form.
        given = [p for kind, _, *rest in events if kind == "answering" for p in rest[0]]
        if given:
            return FoundContext(distinct(given), "given")
        if seen is not None:
            return seen._replace(missing=self._why(events, seen.missing))
        return self._by_steps(events, answer)

    @staticmethod
    def _why(events: Sequence[tuple[Any, ...]], missing: str) -> str:
        """Why there is no context: `nothing_found` where retrievers were asked in vain."""
        found = [event[2] for event in events if event[0] in {"retrieved", "told"}]
        return "nothing_found" if found and not any(found) else missing

    def _by_steps(self, events: Sequence[tuple[Any, ...]], answer: str) -> FoundContext:
        sources = Sources(self.parents)
        named: Sequence[Passage] | None = None
        turn: Sequence[Passage] = ()
        variable: list[Passage] = []
        for kind, step, *rest in events:
            if kind == "named":
                named = rest[0]
            elif kind == "turn":
                turn = rest[0]
            elif kind == "said":
                if rest[1] in CONTEXT_KEYS:
                    variable = [Passage(rest[0])]
            elif kind == "returned":
                sources.returned(step, rest[0], rest[1], follows=rest[2])
            elif kind in _STEPS:
                getattr(sources, kind)(step, *rest)
        # The state of a conversation also holds the documents of earlier turns.
        if named is not None and (sources or not self.keeps_turns):
            return _found(named, "output")
        given = self._given_to_answer(events, answer)
        if given and sources and self.keeps_turns:
            of_this_turn = {passage.text for passage in sources}
            given = [passage for passage in given if passage.text in of_this_turn]
        found = next(
            (
                (passages, source)
                for passages, source in (
                    (given, "given"),
                    (list(sources), sources.kinds),
                    (turn, "messages"),
                    (variable, "prompt_variable"),
                )
                if passages
            ),
            ((), ""),
        )
        return _found(*found, missing=self._why(events, "nothing_retrieved"))

    def _given_to_answer(self, events: Sequence[tuple[Any, ...]], answer: str) -> list[Passage]:
        """The documents among the inputs of the step that gave the answer, or of one around it."""
        sought = words(answer)
        given: dict[Step, list[Passage]] = {}
        first: Step | None = None
        for kind, step, *rest in events:
            if kind == "given":
                given[step] = [passage for passages in rest[0].values() for passage in passages]
            elif kind == "said" and first is None and words(rest[0]) == sought:
                first = step
        while first is not None:
            if given.get(first):
                return given[first]
            first = self.parents.get(first)
        return []


_SEARCHES = frozenset({"retrieved", "retrieving", "reranked", "told", "answering", "named"})
_STEPS = frozenset({"given", "retrieved", "reranked", "told", "failed"})


def _found(
    passages: Sequence[Passage], source: str, missing: str = "nothing_found"
) -> FoundContext:
    passages = distinct(passages)
    return FoundContext(passages, source, "" if passages else missing)


def _calls(events: Sequence[tuple[Any, ...]], parents: Mapping[Step, Step | None]) -> list[Call]:
    retrievers = {event[1] for event in events if event[0] == "retrieving"}
    calls: dict[Step, Call] = {}
    for at, (kind, step, *rest) in enumerate(events):
        if kind == "asked":
            is_aside = bool(retrievers) and any(s in retrievers for s in _around(step, parents))
            calls[step] = Call(rest[0], None, began=at, is_aside=is_aside, step=step)
        elif kind == "replied" and step in calls:
            calls[step] = calls[step]._replace(reply=rest[0], also=rest[1], ended=at)
    return list(calls.values())


def _candidates(events: Sequence[tuple[Any, ...]]) -> list[Candidate]:
    found: list[Candidate] = []
    for at, (kind, _, *rest) in enumerate(events):
        if kind == "said":
            if rest[1] not in _NO_CONTEXT:
                is_usual = rest[1] in CONTEXT_KEYS
                found.append(Candidate(Passage(rest[0]), "text" if is_usual else "loose", at))
        elif kind == "told":
            said = "tool" if len(rest[0]) == 1 else "block"
            found += [
                Candidate(p, said if p.id is None and p.metadata is None else "document", at)
                for p in rest[0]
            ]
        elif kind in {"given", "returned", "retrieved", "reranked", "answering", "named"}:
            for part in rest:  # a list of documents, lists by key, or whether the step follows
                for passages in part.values() if isinstance(part, Mapping) else [part]:
                    if isinstance(passages, Sequence):
                        found += [Candidate(passage, "document", at) for passage in passages]
    return found


def _around(step: Step | None, parents: Mapping[Step, Step | None]) -> Iterator[Step]:
    while step is not None:
        yield step
        step = parents.get(step)


class Sources:
    """What each step of a run fetched and no later step has replaced: the rules by steps.

    Args:
        parents: The run's steps, each with the step it is in, in the order they began.
    """

    def __init__(self, parents: Mapping[Step, Step | None]) -> None:
        self._parents = parents
        self._held: dict[Step, tuple[str, Sequence[Passage]]] = {}
        self._given: dict[Step, Mapping[Any, Sequence[Passage]]] = {}
        # A trace may have very many: by the steps around them, and by what they hold.
        self._within: defaultdict[Step, set[Step]] = defaultdict(set)
        self._holders: defaultdict[_Known | None, set[Step]] = defaultdict(set)

    def __bool__(self) -> bool:
        return bool(self._held)

    def __iter__(self) -> Iterator[Passage]:
        """What is held, in the order in which the steps that fetched it began."""
        held = list(self._held)
        for step in held if len(held) == 1 else list(self._parents):
            yield from self._held.get(step, ("", ()))[1]

    @property
    def kinds(self) -> str:
        """What fetched it: `retriever`, `tool`, `step`."""
        return ", ".join(sorted({kind for kind, passages in self._held.values() if passages}))

    def given(self, step: Step, by_key: Mapping[Any, Sequence[Passage]]) -> None:
        """A step began: remember the documents among its inputs."""
        self._given[step] = by_key

    def returned(
        self,
        step: Step,
        passages: Sequence[Passage] | None,
        by_key: Mapping[Any, Sequence[Passage]] | None,
        *,
        follows: bool,
    ) -> None:
        """A plain step ended.

        A list of documents replaces those fetched inside the step; if the step was given documents,
        as a reranker is, also those fetched by the steps before it in the same sequence.
        """
        given = self._given.pop(step, None) or {}
        was_given = any(given.values())
        if by_key is not None:
            self._returned_state(step, by_key, given)
        elif passages or (passages is not None and was_given):
            after = was_given and follows
            self._replace(step, "step", passages, inside=self._parents.get(step) if after else step)

    def retrieved(self, step: Step, passages: Sequence[Passage]) -> None:
        """A retriever ended: its documents replace those of the retrievers inside it."""
        self._replace(step, "retriever", passages, inside=step)

    def reranked(self, step: Step, passages: Sequence[Passage], given: Sequence[Passage]) -> None:
        """A reranker ended: what it let through replaces what it chose from."""
        self._drop(self._offered_in(set(_known_as(given))))
        self._put(step, "retriever", passages)

    def told(self, step: Step, passages: Sequence[Passage]) -> None:
        """A step gave passages on, which count unless it fetched documents: those count then."""
        self._hold(step, "tool", passages)

    def failed(self, step: Step) -> None:
        """A step failed: a retry or a fallback answers without what was fetched inside it."""
        self._given.pop(step, None)
        self._drop(self._within.get(step, ()))

    def _returned_state(
        self,
        step: Step,
        by_key: Mapping[Any, Sequence[Passage]],
        given: Mapping[Any, Sequence[Passage]],
    ) -> None:
        fetched: list[Passage] = []
        for key, now in by_key.items():
            before = given.get(key)
            if not now and before is None:
                continue
            offered = set(_known_as(before or ()))
            fetched += [passage for passage in now if passage[:2] not in offered]
            if now != before and offered.issuperset(_known_as(now)):
                # No new documents under the same key: a grader or a reranker chose among them.
                self._drop(self._offered_in(offered))
                self._put(step, "step", now)
        self._hold(step, "step", fetched)

    def _hold(self, step: Step, kind: str, passages: Sequence[Passage]) -> None:
        if passages and not self._within.get(step):
            self._put(step, kind, passages)

    def _replace(
        self, step: Step, kind: str, passages: Sequence[Passage], *, inside: Step | None
    ) -> None:
        self._drop(self._within.get(inside, ()))
        self._put(step, kind, passages)

    def _put(self, step: Step, kind: str, passages: Sequence[Passage]) -> None:
        self._drop([step])
        self._held[step] = (kind, passages)
        for around in _around(step, self._parents):
            self._within[around].add(step)
        for known in _known_as(passages) or (None,):
            self._holders[known].add(step)

    def _offered_in(self, offered: set[_Known]) -> list[Step]:
        """The sources all of whose documents are among these; so are those that found none."""
        some = set().union(*(self._holders.get(known, ()) for known in (None, *offered)))
        return [each for each in some if offered.issuperset(_known_as(self._held[each][1]))]

    def _drop(self, sources: Iterable[Step]) -> None:
        for source in list(sources):
            if source in self._held:
                for known in _known_as(self._held.pop(source)[1]) or (None,):
                    self._holders[known].discard(source)
                for around in _around(source, self._parents):
                    self._within[around].discard(source)


_Known = tuple[str, str | None]
"""What tells a document from others: its text and its id."""


def _known_as(passages: Iterable[Passage]) -> list[_Known]:
    # Without the score, which a reranker changes on the same documents.
    return [passage[:2] for passage in passages]
