"""LlamaIndex's own spans, as OpenInference writes them: one a method, whose name says what it is.

Nodes are shown by id and score only outside of retrievers. A workflow's span shows the event that
it ended with as Python writes objects, with longer texts cut.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ragaliq.capture.texts import Message
from ragaliq.core.passages import Passage
from ragaliq.traces.messages import PROMPT_VARIABLES, READER, decoded, number
from ragaliq.traces.span import TraceSpan

SCOPE = "openinference.instrumentation.llama_index"

QUERIES = frozenset({"query", "aquery"})
CHATS = frozenset({"chat", "achat", "stream_chat", "astream_chat"})
ENGINES = QUERIES | CHATS
"""Methods of whole runs, besides a workflow's."""
WORKFLOW = "run"
SYNTHESIZE = frozenset({"synthesize", "asynthesize", "get_response", "aget_response"})
"""Methods that answer from what they are given."""
EVALUATE = frozenset({"evaluate", "aevaluate", "evaluate_response", "aevaluate_response"})
OWN_PROMPTS = (
    "Describe what the provided text is about. Also describe some of the questions",
    "Please tell if a given piece of information is supported by the context.",
    "Your task is to evaluate if the response for the query",
)
"""Texts of its prompts: to build a DocumentSummaryIndex, and of its Faithfulness- and
RelevancyEvaluator."""
_RERANK = frozenset({"postprocess_nodes", "apostprocess_nodes"})
_WRITE = frozenset({"get_response", "aget_response"})
_CALLS = CHATS | {"complete", "acomplete", "stream_complete", "astream_complete"}
_STREAM_FIELDS = frozenset({"response_gen", "response_txt"})
_RESPONSE_FIELDS = _STREAM_FIELDS | {"source_nodes", "response"}

_STREAM = re.compile(r"<\w*_?generator object|\w+\(result=\w*Streaming\w*Response\(")
_EVENT = re.compile(r"\w+\(")
_NODE = re.compile(r"<NodeWithScore\(node=\w+\(id_=(?P<id>.*)\), score=(?P<score>[^()]*)\)>")
_ENUM = re.compile(r"<\w+\.\w+: ('[^']*')>")
_WHOLE, _CUT = 50, "..."
"""Workflows show so many characters of a text that is longer, with dots after them."""
_SHOWN = 40
"""So many characters of an answer tell that it is the one in a result which is cut."""
_TELLING = 20
"""So many do where the result is cut after them."""
_FINAL = "Answer:"
"""After it a ReAct agent's model writes what is for the user."""
_MOST_NESTED = 20
_NO_SUCH_TOOL = "not found. Please select a tool that is available."
_SETUP, _PARSE = "setup_agent", "parse_agent_output"
_TEXT_BLOCK = re.compile(
    r"TextBlock\(block_type='text', text="
    r"""(?P<text>(?P<quote>['"])(?:\\.|(?!(?P=quote))[^\\])*(?P=quote))\)"""
)
_CITED = re.compile(rf"cited_content={_TEXT_BLOCK.pattern}")
_CITABLE = re.compile(r"CitableBlock\(.*?content=\[(.*?\))\]\)", re.DOTALL)


def method_of(span: TraceSpan) -> str:
    """Method of a span; empty for spans outside LlamaIndex."""
    return span.name.rpartition(".")[2] if span.scope == SCOPE else ""


def is_function(span: TraceSpan) -> bool:
    """Return true for a function of the application's, under a decorator, that answers a question.

    One that returns nothing, or is asked nothing, is only around what happens in it.
    """
    is_plain = "." not in span.name.rpartition("<locals>.")[2]
    if not (method_of(span) and is_plain and "output.value" in span.attributes):
        return False
    return READER.question(decoded(span.attributes.get("input.value"))) is not None


def is_own_work(span: TraceSpan, messages: Sequence[Message]) -> bool:
    """True for a call of LlamaIndex's own, to index or to evaluate, by its first prompt.

    Only where the prompt, or the query in it, begins so: a user may ask anything.
    """
    prompts = [message.text.lstrip() for message in messages]
    queries = [prompt.partition("\nQuery: ")[2] for prompt in prompts]
    is_own = any(text.startswith(OWN_PROMPTS) for text in (*prompts, *queries))
    return is_own and method_of(span) in ENGINES | SYNTHESIZE


def is_call(span: TraceSpan) -> bool:
    """True if a model's span is a call; `predict` and others have another span for it."""
    return method_of(span) in _CALLS


def chunks_of(span: TraceSpan, inputs: Any) -> list[str]:
    """Texts that a synthesizer answers from."""
    given = inputs.get("text_chunks") if isinstance(inputs, Mapping) else None
    # `Generation` shows its model none of them.
    is_shown = method_of(span) in _WRITE and not span.name.startswith("Generation.")
    listed = given if is_shown and isinstance(given, list) else []
    return [text for text in listed if isinstance(text, str)]


def scored(passages: Sequence[Passage], outputs: Any) -> list[Passage]:
    """Passages in the order and with the scores of the nodes in an output.

    A document's own attributes show a score of 0 for a node without one.
    """
    known = {passage.id: passage for passage in passages if passage.id is not None}
    shown = [known[id_]._replace(score=score) for id_, score in _nodes_in(outputs) if id_ in known]
    return shown or list(passages)


def is_reranker(span: TraceSpan) -> bool:
    """True if a span's output lists the nodes that a postprocessor kept."""
    return method_of(span).lstrip("_") in _RERANK


def owned(chunks: Sequence[str], found: Sequence[Passage], sources: Any) -> list[Passage]:
    """Chunks of a synthesizer as passages, each with what is known of the document in it.

    Args:
        chunks: Texts that it was given.
        found: Documents found before.
        sources: Nodes that the answer names. They come in the order of the chunks, with further
            ones after them, and have ids of their own where documents were cut into new nodes.
    """
    left = list(found)
    passages = []
    for chunk in chunks:
        owner = next((each for each in left if each.text and each.text in chunk), None)
        if owner is not None:
            left.remove(owner)
        passages.append(Passage(chunk) if owner is None else owner._replace(text=chunk))
    named = list(_nodes_in(sources))
    if len(named) < len(passages):
        return passages
    pairs = zip(passages, named, strict=False)
    return [passage._replace(id=id_, score=score) for passage, (id_, score) in pairs]


def prompted(spans: Iterable[TraceSpan]) -> list[str]:
    """Contexts that templates of prompts were filled with."""
    held = (decoded(each.attributes.get(PROMPT_VARIABLES)) for each in spans if method_of(each))
    return [
        value
        for variables in held
        if isinstance(variables, Mapping)
        for name, value in variables.items()
        if name.startswith("context") and isinstance(value, str)
    ]


def as_prompted(passages: Sequence[Passage], prompted: Sequence[str]) -> list[Passage]:
    """Passages with the metadata that a prompt showed before their text."""
    texts = [passage.text for passage in passages]

    def shown(passage: Passage) -> Passage:
        for text in prompted:
            others = (other for other in texts if other != passage.text)
            if text.endswith(passage.text) and not any(other in text for other in others):
                return passage._replace(text=text)
        return passage

    return [shown(passage) for passage in passages]


def is_of_no_tool(message: Message) -> bool:
    """True if a message of LlamaIndex's says that there is no tool of that name."""
    return message.role == "tool" and message.text.endswith(_NO_SUCH_TOOL)


def sources_in(outputs: Any) -> Any:
    """Nodes that a response names."""
    return outputs.get("source_nodes") if isinstance(outputs, Mapping) else None


def _nodes_in(outputs: Any) -> Iterator[tuple[str, float | None]]:
    """Ids and scores of nodes that are shown as Python writes objects."""
    for shown in outputs if isinstance(outputs, list) else ():
        node = _NODE.fullmatch(shown) if isinstance(shown, str) else None
        if node is not None:
            yield node["id"], number(node["score"])


def tool_message(outputs: Any) -> Any:
    """Message from a tool's output; hand-offs, failures and forms are marked as errors.

    A form is filled in by the model itself: the tool returns its own arguments.
    """
    if not isinstance(outputs, Mapping) or not isinstance(outputs.get("blocks"), list):
        return outputs
    given = outputs.get("raw_input")
    filled = given.get("kwargs") if isinstance(given, Mapping) else None
    is_form = bool(filled) and filled == outputs.get("raw_output")
    is_evidence = not (outputs.get("is_error") or outputs.get("tool_name") == "handoff" or is_form)
    texts = [text for block in outputs["blocks"] for text in _texts_of(block)]
    return {"role": "tool", "content": texts, "status": "success" if is_evidence else "error"}


def _texts_of(block: Any) -> Iterator[str]:
    """The texts of a block; one that can be cited holds blocks of its own."""
    if isinstance(block, Mapping):
        if isinstance(block.get("text"), str):
            yield block["text"]
        inner = block.get("content")
        for each in inner if isinstance(inner, list) else ():
            if isinstance(each, Mapping) and isinstance(each.get("text"), str):
                yield each["text"]


def is_streamed(span: TraceSpan, outputs: Any) -> bool:
    """True if an answer was streamed, and so is not on the run's span."""
    has_stream = isinstance(outputs, Mapping) and not _STREAM_FIELDS.isdisjoint(outputs)
    is_stream = isinstance(outputs, str) and _STREAM.match(outputs) is not None
    return has_stream or is_stream or method_of(span).startswith(("stream_", "astream_"))


def payload_of(span: TraceSpan, outputs: Any, said: Sequence[str]) -> Any:
    """Output of a run: for a workflow the result in its last event; None for a stream.

    Args:
        span: The run's own.
        outputs: What its span shows.
        said: Texts that models and engines of the run had said, the latest first; what is shown cut
            is completed by them.
    """
    if isinstance(outputs, Mapping) and not _RESPONSE_FIELDS.isdisjoint(outputs):
        return outputs.get("response")  # a stream has none
    if isinstance(outputs, str) and outputs.startswith("<"):
        return None
    if method_of(span) != WORKFLOW or not isinstance(outputs, str) or not _EVENT.match(outputs):
        return outputs
    result = _result_in(outputs)
    if result is not None:
        return _completed(result, said)
    if whole := _TEXT_BLOCK.search(outputs.partition("response=ChatMessage(")[2]):
        return ast.literal_eval(whole["text"])
    finals = (part for text in said for part in (text.partition(_FINAL)[2].strip(), text))
    return next((text for text in finals if text and _is_shown(text, outputs)), None)


def asked_of_agent(span: TraceSpan, inputs: Any) -> tuple[str, ...]:
    """Texts of the last message to an agent.

    The agent's models are shown it with a state around it.
    """
    event = inputs.get("ev") if isinstance(inputs, Mapping) else None
    if method_of(span) != _SETUP or not isinstance(event, str):
        return ()
    return _texts_shown(event.rpartition("ChatMessage(")[2])


def cited_texts(span: TraceSpan, inputs: Any) -> tuple[str, ...]:
    """Texts that a model's provider cited in its reply to an agent; the model's span lacks them."""
    event = inputs.get("ev") if isinstance(inputs, Mapping) else None
    if method_of(span) != _PARSE or not isinstance(event, str):
        return ()
    return _texts_shown(event, _CITED)


def citable_texts(inputs: Any) -> tuple[str, ...]:
    """Texts that a model was given to cite; only the request as Python writes it has them."""
    messages = inputs.get("messages") if isinstance(inputs, Mapping) else None
    shown = "\n".join(map(str, messages)) if isinstance(messages, list) else ""
    return tuple(text for held in _CITABLE.findall(shown) for text in _texts_shown(held))


def _texts_shown(shown: str, block: re.Pattern[str] = _TEXT_BLOCK) -> tuple[str, ...]:
    """Texts of the blocks in what Python writes of messages."""
    try:
        return tuple(ast.literal_eval(match["text"]) for match in block.finditer(shown))
    except (ValueError, SyntaxError):
        return ()


def prompt_arguments(inputs: Any) -> Any:
    """Values that a prompt's template was filled with; None for other calls."""
    return inputs.get("prompt_args") if isinstance(inputs, Mapping) else None


def _result_in(shown: str) -> Any:
    """Result in the `repr` of an event; objects become mappings of their fields."""
    try:
        event = _value(ast.parse(_ENUM.sub(r"\1", shown), mode="eval").body, 0)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    result = event.get("result", event) if isinstance(event, Mapping) else event
    # An agent's output holds much more than the message that is its answer.
    response = result.get("response") if isinstance(result, Mapping) else None
    return response if isinstance(response, Mapping) and "blocks" in response else result


def _value(node: ast.expr, depth: int) -> Any:
    if depth > _MOST_NESTED:
        raise ValueError
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [_value(each, depth + 1) for each in node.elts]
    if isinstance(node, ast.Dict):
        return {
            ast.literal_eval(key): _value(value, depth + 1)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None  # of `**` there is none
        }
    if isinstance(node, ast.Call):
        return {each.arg: _value(each.value, depth + 1) for each in node.keywords if each.arg}
    return ast.literal_eval(node)


def _completed(value: Any, said: Sequence[str]) -> Any:
    """Complete the truncated texts of a value, where possible."""
    if isinstance(value, str) and len(value) > _WHOLE and value.endswith(_CUT):
        start = value.removesuffix(_CUT)
        return next((text for each in said for text in _from(each, start)), value)
    if isinstance(value, Mapping):
        return {key: _completed(held, said) for key, held in value.items()}
    return [_completed(held, said) for held in value] if isinstance(value, list) else value


def _from(text: str, start: str) -> Iterator[str]:
    """Part of a text from `start` on: agents that reason aloud end with their answer."""
    for each in (text, text.partition(_FINAL)[2].strip()):
        if each.startswith(start):
            yield each


def is_cut(answer: str) -> bool:
    """True if a workflow's answer is truncated."""
    return len(answer) == _WHOLE + len(_CUT) and answer.endswith(_CUT)


def _is_shown(text: str, shown: str) -> bool:
    """True if a text is the one in a result, which instrumentations truncate."""
    said = repr(text)[1:-1]
    at = shown.find(said[:_TELLING])
    is_quoted = at > 0 and shown[at - 1] in {"'", '"'}
    return is_quoted and (said[:_SHOWN] in shown or said.startswith(shown[at:].removesuffix(_CUT)))
