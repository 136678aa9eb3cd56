"""A traced LlamaIndex query, chat or workflow.

OpenInference writes LlamaIndex's own spans, one a method; their names say what they are. Nodes are
shown by id and score only, outside of retrievers; a workflow's span shows the event it began with
only by name, and the one it ended with only in part.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragaliq.capture import models_words, without_answers
from ragaliq.capture.run import RunLog
from ragaliq.capture.texts import Found, Message
from ragaliq.core.passages import Passage
from ragaliq.traces.conventions import PROMPT_VARIABLES, Kind, Step
from ragaliq.traces.messages import READER, decoded, number
from ragaliq.traces.tree import ENGINES, WORKFLOW, method_of, walk

_STREAMED = frozenset({"stream_chat", "astream_chat"})
_CHAT = _STREAMED | {"chat", "achat"}
_RETRIEVE = frozenset({"retrieve", "aretrieve"})
_RERANK = frozenset({"_postprocess_nodes", "postprocess_nodes"})
_SYNTHESIZE = frozenset({"synthesize", "asynthesize"})
_WRITE = frozenset({"get_response", "aget_response"})
_NODE = re.compile(r"<NodeWithScore\(node=\w+\(id_=(?P<id>.*)\), score=(?P<score>[^()]*)\)>")
_RESPONSE_KEYS = {"source_nodes", "sources", "metadata", "response_gen", "response_txt"}
_RESULT = "StopEvent(result="
_EVENT = re.compile(r"\w+\(")
_SETUP = "setup_agent"
_TEXT_BLOCK = re.compile(
    r"TextBlock\(block_type='text', text="
    r"""(?P<text>(?P<quote>['"])(?:\\.|(?!(?P=quote))[^\\])*(?P=quote))\)"""
)
_WHOLE, _CUT = 50, "..."
"""Workflows show so many characters of a text that is longer, with dots after them."""
_FINAL = "Answer:"
"""After it a ReAct agent's model writes what is for the user."""
_NO_SUCH_TOOL = "not found. Please select a tool that is available."
"""So ends the reply to a model that calls a tool which there is not: no span is a tool's then."""
_SHOWN = 40
"""So many characters of an answer tell that it is the one shown in part."""
_TELLING = 20
"""So many do where the result is cut after them."""
_DOCUMENT = 15
"""A text of so many characters that stands in a prompt does so as a document, not by chance."""


def is_workflow(root: Step) -> bool:
    """Whether a run is a workflow's."""
    return method_of(root) == WORKFLOW


def is_streamed(root: Step) -> bool:
    """Whether a run's answer was returned piece by piece, and is therefore not on its span."""
    has_stream = not {"response_gen", "response_txt"}.isdisjoint(_fields(root.outputs))
    return has_stream or method_of(root) in _STREAMED


def is_chat(root: Step) -> bool:
    """Whether a run is a turn of a chat engine's conversation."""
    return method_of(root) in _CHAT


def is_rag(steps: Sequence[Step]) -> bool:
    """Whether something wrote an answer from documents, if only from none, or a tool was asked."""
    return any(method_of(step) in _SYNTHESIZE or all(_told(step)) for step in steps)


def _fields(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


# --- question and answer --------------------------------------------------------------------------


def question_of(steps: Sequence[Step]) -> Found | None:
    """What the user asked; of a workflow, what its first model, engine or retriever was asked.

    A prompt around documents is no question: what they were sought for, or answered, is.
    """
    if not is_workflow(steps[0]):
        return READER.question(steps[0].inputs)
    outermost = list(_outermost(steps))
    found = {p.text for s in steps if s.kind is Kind.RETRIEVER for p in s.passages or ()}
    texts = [text for text in found if len(text) >= _DOCUMENT]
    asked = (
        Found(_without_state(each, steps), "prompt.user")
        for each in (s.asked for s in outermost if s.kind is Kind.LLM)
        if each and not any(text in each for text in texts)
    )
    sought = (READER.question(s.inputs) for s in outermost if s.kind is not Kind.LLM)
    return next(asked, None) or next((each for each in sought if each is not None), None)


def _without_state(asked: str, steps: Sequence[Step]) -> str:
    """The user's words in what a model was asked: agents with a state write it around them.

    What a step is given shows the whole of its event, whose last message is the user's.
    """
    setup = next((step for step in steps if method_of(step) == _SETUP), None)
    event = _fields(setup.inputs).get("ev") if setup is not None else None
    last = event.rpartition("ChatMessage(")[2] if isinstance(event, str) else ""
    try:
        said = [ast.literal_eval(match["text"]) for match in _TEXT_BLOCK.finditer(last)]
    except (ValueError, SyntaxError):
        return asked
    if not said or not all(text and text in asked for text in said):
        return asked
    return asked[asked.find(said[0]) : asked.rfind(said[-1]) + len(said[-1])] or asked


def _outermost(steps: Sequence[Step]) -> Iterator[Step]:
    """Models, and what asks them, and retrievers: all that are in no other of these."""
    beyond = 0
    for step in steps[1:]:
        is_inner = method_of(step) in ENGINES | _RETRIEVE | _SYNTHESIZE
        if step.index > beyond and (is_inner or step.kind is Kind.LLM):
            beyond = step.last if is_inner else beyond
            yield step


def answer_of(steps: Sequence[Step]) -> Found | None:
    """What the run answered; None where a stream did, whose text no span has."""
    root = steps[0]
    fields = _fields(root.outputs)
    if is_workflow(root):
        found = _workflow_answer(steps)
    elif not fields or "response" in fields:
        found = READER.answer(root.outputs)
    elif _RESPONSE_KEYS & set(fields):
        return None
    else:
        found = READER.answer_text(root.outputs)  # a structured one
    return found and found._replace(text=models_words(found.text))


def _workflow_answer(steps: Sequence[Step]) -> Found | None:
    shown, where = steps[0].outputs, "output.result"
    if not isinstance(shown, str):
        found = READER.answer(shown)
        return found and found._replace(where=where)
    if not _EVENT.match(shown):
        return None
    try:
        result = ast.literal_eval(shown.removeprefix(_RESULT).removesuffix(")"))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        result = None
    found = READER.answer(result, where)
    is_cut = isinstance(result, str) and len(result) > _WHOLE and result.endswith(_CUT)
    if found is not None and not is_cut:
        return found
    said: list[tuple[int, str]] = []
    for step in steps[1:]:
        found = READER.answer(step.outputs) if method_of(step) in ENGINES else None
        text = step.reply if step.kind is Kind.LLM else found and found.text
        texts = (text, text.partition(_FINAL)[2].strip()) if text else ()
        said += [(step.span.end_ns, each) for each in texts if each and _is_shown(each, shown)]
    return Found(max(said, key=lambda each: each[0])[1], where) if said else None


def _is_shown(text: str, shown: str) -> bool:
    """Whether a text is the one in a result, which instrumentations cut after some characters."""
    said = repr(text)[1:-1]
    at = shown.find(said[:_TELLING])
    return at >= 0 and (said[:_SHOWN] in shown or said.startswith(shown[at:].removesuffix(_CUT)))


# --- context --------------------------------------------------------------------------------------


def _told(step: Step) -> tuple[str, bool]:
    """What a tool said, and whether it is evidence: hand-offs and failures are none."""
    outputs = _fields(step.outputs) if step.kind is Kind.TOOL else {}
    blocks = outputs.get("blocks")
    listed = blocks if isinstance(blocks, list) else []
    texts = [block.get("text") for block in listed if isinstance(block, Mapping)]
    is_evidence = not outputs.get("is_error") and outputs.get("tool_name") != "handoff"
    return "\n".join(text for text in texts if isinstance(text, str)), is_evidence


def log_of(steps: Sequence[Step]) -> RunLog:
    """A run's steps as the events that a handler would have seen."""
    return _Reading(steps).log


class _Reading:
    """Follows a run's steps, and knows every node it met."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.log = RunLog()
        self._known: dict[str, Passage] = {}
        self._found: list[Passage] = []
        self._before: dict[int, int] = {}  # how many were found before a retriever began
        self._no_evidence: set[str] = set()
        self._inner: list[str] = []  # what engines inside it answered
        # What the innermost response around a step says it was made from.
        self._sources: list[Any] = [None]
        for step, parent, is_end in walk(steps):
            if not is_end:
                self._sources.append(_fields(step.outputs).get("source_nodes", self._sources[-1]))
                self.log.began(step.index, None if parent is None else parent.index)
                self._began(step)
                continue
            self._sources.pop()
            if step.kind is Kind.LLM:
                if step.reply is not None and not step.span.is_error:
                    self.log.replied(step.index, step.reply, step.also)
            elif step.span.is_error:
                self.log.failed(step.index)
                if step.kind is Kind.TOOL:  # the model sees what it raised
                    said = (e.attributes.get("exception.message") for e in step.span.events)
                    self._no_evidence.update(text for text in said if isinstance(text, str))
            else:
                self._ended(step)

    def _began(self, step: Step) -> None:
        """Take a step that began."""
        part = method_of(step)
        if step.kind is Kind.LLM:
            messages = [
                message._replace(role="system") if self._is_no_evidence(message) else message
                for message in step.messages
            ]
            if messages or not any(child.kind is Kind.LLM for child in step.children):
                self.log.asked(step.index, messages)  # `predict`, say, has another call write it
        elif part in _RETRIEVE:
            self.log.retrieving(step.index)
            self._before[step.index] = len(self._found)
        elif part in _SYNTHESIZE and not step.span.name.startswith("Generation."):
            # `Generation` is given nodes and shows its model none of them.
            given = without_answers(self._synthesized(step), self._inner)
            self.log.answering(step.index, given)

    def _is_no_evidence(self, message: Message) -> bool:
        is_own = message.role == "tool" and message.text.endswith(_NO_SUCH_TOOL)
        return is_own or message.text in self._no_evidence

    def _ended(self, step: Step) -> None:
        part, log = method_of(step), self.log
        if part in _RETRIEVE:
            self._known |= {p.id: p for p in step.passages or () if p.id is not None}
            found = self._nodes(step.outputs) or step.passages or []
            # Nodes made of what engines inside it answered are none, as for the handler.
            found = without_answers(found, self._inner)
            self._found[self._before[step.index] :] = found  # in place of those inside it
            log.retrieved(step.index, found)
        elif part in _RERANK or step.kind is Kind.RERANKER:
            kept = self._nodes(step.outputs) or step.passages or []
            log.reranked(step.index, kept, self._found)
            self._found = list(kept)
        elif step.kind is Kind.TOOL:
            text, is_evidence = _told(step)
            if not is_evidence:
                self._no_evidence.add(text)
            elif text:
                log.told(step.index, READER.told(text))
        elif part in ENGINES and step.index == 0:
            named = self._nodes(_fields(step.outputs).get("source_nodes"))
            if named:
                log.named(named)
        elif part in ENGINES and (answer := READER.answer(step.outputs)) is not None:
            self._inner.append(answer.text)

    def _nodes(self, listed: Any) -> list[Passage]:
        """The passages of nodes that are shown by id and score only, where their text is known."""
        nodes = [(self._known.get(node.id or ""), node) for node in _shown(listed)]
        return [
            known._replace(score=node.score)
            for known, node in nodes
            if known is not None and known.text.strip()
        ]

    def _synthesized(self, step: Step) -> list[Passage]:
        """What an answer was written from: the texts a synthesizer was given, metadata included."""
        given = (
            _fields(child.inputs).get("text_chunks")
            for child in step.children
            if method_of(child) in _WRITE
        )
        chunks = next((each for each in given if isinstance(each, list)), None)
        if chunks is None:
            return _as_prompted(step, self._nodes(self._sources[-1]) or self._found)
        texts = [text for text in chunks if isinstance(text, str)]
        owners = _owners(texts, self._found)
        listed = _shown(self._sources[-1])
        if len(listed) >= len(texts):  # in the order of the texts, followed by further sources
            # Nodes may have been cut into new ones, whose ids nothing else shows.
            owners = [
                node._replace(metadata=cut_from.metadata if cut_from is not None else None)
                for node, cut_from in zip(listed, owners, strict=False)
            ]
        return [
            Passage(text) if owner is None else owner._replace(text=text)
            for text, owner in zip(texts, owners, strict=True)
            if text.strip()
        ]


def _shown(listed: Any) -> list[Passage]:
    """Ids and scores that `<NodeWithScore(node=TextNode(id_=...), score=...)>` tells, textless."""
    nodes = listed if isinstance(listed, list) else []
    shown = [_NODE.fullmatch(node) for node in nodes if isinstance(node, str)]
    return [Passage("", match["id"], number(match["score"])) for match in shown if match]


def _owners(texts: Sequence[str], found: Sequence[Passage]) -> list[Passage | None]:
    """For each text, the retrieved document that it was made from."""
    left = list(found)
    owners: list[Passage | None] = []
    for text in texts:
        owner = next((each for each in left if each.text and each.text in text), None)
        if owner is not None:
            left.remove(owner)
        owners.append(owner)
    return owners


def _as_prompted(step: Step, passages: Sequence[Passage]) -> list[Passage]:
    """The passages as models below a step were shown them one by one, with their metadata."""
    prompted: list[str] = []
    todo = [step]
    while todo:
        each = todo.pop()
        todo += each.children
        held = decoded(each.span.attributes.get(PROMPT_VARIABLES))
        variables = _fields(held) if each.kind is Kind.LLM else {}
        prompted += [
            value
            for name, value in variables.items()
            if name.startswith("context") and isinstance(value, str)
        ]
    texts = [passage.text for passage in passages]

    def as_prompted(passage: Passage) -> Passage:
        for text in prompted:
            others = (other for other in texts if other != passage.text)
            if text.endswith(passage.text) and not any(other in text for other in others):
                return passage._replace(text=text)
        return passage

    return [as_prompted(passage) for passage in passages]
