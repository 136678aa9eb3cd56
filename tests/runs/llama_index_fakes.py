"""Parts of LlamaIndex applications that need no network.

Models with scripted replies, in the two kinds that integrations have, embeddings of words, and
retrievers of fixed texts. `PROMPTS` keeps what the models were shown and what they replied.
"""

import hashlib
import json
import re
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, NamedTuple

from llama_index.core import Document, Settings, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
    MessageRole,
    TextBlock,
    ToolCallBlock,
)
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from llama_index.evaluation.ragaliq import RagaliqSpanHandler
from ragaliq import Monitor
from ragaliq.testing import ScriptedJudge

PROMPTS: list[tuple[str, str]] = []
_PIECE = re.compile(r"\s*\S+|\s+$")


class Call(NamedTuple):
    """A call of a tool by a model."""

    name: str
    arguments: dict[str, Any]


def call(name: str, /, **arguments: Any) -> Call:
    return Call(name, arguments)


def _script(replies):
    """A function of the prompt: the replies in turn, the last one again and again."""
    left = list(replies)

    def reply(prompt):
        said = left.pop(0) if len(left) > 1 else left[0]
        said = said(prompt) if callable(said) else said
        PROMPTS.append((prompt, repr(said)))
        return said

    return reply


def when(cases, otherwise=""):
    """A reply by what stands in the prompt: the first of the cases that does."""

    def reply(prompt):
        for text, said in cases.items():
            if text in prompt:
                return said(prompt) if callable(said) else said
        return otherwise

    return reply


class Writer(CustomLLM):
    """A model that completes texts."""

    reply: Callable[[str], Any]
    is_chat_model: bool = False
    context_window: int = 100_000

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            context_window=self.context_window,
            num_output=32,
            is_chat_model=self.is_chat_model,
            model_name="scripted-writer",
        )

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self.reply(prompt))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        said = self.reply(prompt)

        def pieces():
            text = ""
            for piece in _PIECE.findall(said):
                text += piece
                yield CompletionResponse(text=text, delta=piece)

        return pieces()


class Talker(FunctionCallingLLM):
    """A chat model that calls tools, as the integrations of the providers are."""

    reply: Callable[[str], Any]
    context_window: int = 100_000
    calls_in_blocks: bool = True

    @classmethod
    def class_name(cls) -> str:
        return "Talker"

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            context_window=self.context_window,
            num_output=32,
            is_chat_model=True,
            is_function_calling_model=True,
            model_name="scripted-talker",
        )

    def _message(self, messages) -> ChatMessage:
        shown = "\n".join(f"{m.role.value}: {_text(m)}" for m in messages)
        said = self.reply(shown)
        if isinstance(said, ChatMessage):
            return said
        parts = [said] if isinstance(said, str | Call) else list(said)
        text = "".join(part for part in parts if isinstance(part, str))
        calls = [part for part in parts if isinstance(part, Call)]
        message = ChatMessage(role=MessageRole.ASSISTANT, content=text or None)
        if self.calls_in_blocks:
            message.blocks += [
                ToolCallBlock(tool_call_id=f"call_{n}", tool_name=c.name, tool_kwargs=c.arguments)
                for n, c in enumerate(calls)
            ]
        elif calls:
            message.additional_kwargs["tool_calls"] = [
                {"id": f"call_{n}", "name": c.name, "arguments": json.dumps(c.arguments)}
                for n, c in enumerate(calls)
            ]
        return message

    @llm_chat_callback()
    def chat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        return ChatResponse(message=self._message(messages))

    @llm_chat_callback()
    async def achat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        return ChatResponse(message=self._message(messages))

    def _pieces(self, messages):
        whole = self._message(messages)
        text = ""
        for piece in _PIECE.findall(_text(whole)) or [""]:
            text += piece
            message = ChatMessage(
                role=whole.role, content=text, additional_kwargs=whole.additional_kwargs
            )
            message.blocks += [b for b in whole.blocks if not isinstance(b, TextBlock)]
            yield ChatResponse(message=message, delta=piece)

    @llm_chat_callback()
    def stream_chat(self, messages: Any, **kwargs: Any) -> Any:
        return self._pieces(messages)

    @llm_chat_callback()
    async def astream_chat(self, messages: Any, **kwargs: Any) -> Any:
        pieces = self._pieces(messages)

        async def stream():
            for piece in pieces:
                yield piece

        return stream()

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        said = self._message([ChatMessage(role="user", content=prompt)])
        return CompletionResponse(text=_text(said))

    @llm_completion_callback()
    async def acomplete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        return CompletionResponse(text=_text(self._message([ChatMessage(prompt)])))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        def stream():
            for piece in self._pieces([ChatMessage(role="user", content=prompt)]):
                yield CompletionResponse(text=piece.message.content or "", delta=piece.delta)

        return stream()

    @llm_completion_callback()
    async def astream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        async def stream():
            for piece in self._pieces([ChatMessage(role="user", content=prompt)]):
                yield CompletionResponse(text=piece.message.content or "", delta=piece.delta)

        return stream()

    def _prepare_chat_with_tools(self, tools, user_msg=None, chat_history=None, **kwargs):
        for name in ("verbose", "allow_parallel_tool_calls", "tool_required"):
            kwargs.pop(name, None)  # what integrations put into their requests
        messages = list(chat_history or ())
        if user_msg is not None:
            messages.append(ChatMessage(user_msg) if isinstance(user_msg, str) else user_msg)
        specs = [tool.metadata.to_openai_tool(skip_length_check=True) for tool in tools]
        return {"messages": messages, "tools": specs, **kwargs}

    def get_tool_calls_from_response(self, response, error_on_no_tool_call=True, **kwargs):
        found = [b for b in response.message.blocks if isinstance(b, ToolCallBlock)]
        selections = [
            ToolSelection(tool_id=b.tool_call_id, tool_name=b.tool_name, tool_kwargs=b.tool_kwargs)
            for b in found
        ] or [
            ToolSelection(
                tool_id=c["id"], tool_name=c["name"], tool_kwargs=json.loads(c["arguments"])
            )
            for c in response.message.additional_kwargs.get("tool_calls", ())
        ]
        if not selections and error_on_no_tool_call:
            raise ValueError("The model called no tool.")
        return selections


def _text(message):
    return "\n".join(b.text for b in message.blocks if isinstance(b, TextBlock))


def writer(*replies: Any, **options: Any) -> Writer:
    return Writer(reply=_script(replies), **options)


def talker(*replies: Any, **options: Any) -> Talker:
    return Talker(reply=_script(replies), **options)


_COMMON = frozenset("a an and are be by do does for how in is it long many much of on the to "
                    "what when where which who why with".split())  # fmt: skip


class WordEmbedding(BaseEmbedding):
    """Texts are alike that have words in common."""

    def _get_text_embedding(self, text: str) -> list[float]:
        vector = [0.001] * 256
        for word in re.findall(r"[\u3400-\u9fff\u3040-\u30ff]|\w+", text.lower()):
            if word not in _COMMON:
                place = hashlib.md5(word[:6].encode(), usedforsecurity=False).digest()[0]
                vector[place] += 1.0
        return vector

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class Shelf(BaseRetriever):
    """Finds these nodes, whatever is asked."""

    def __init__(self, *found: Any) -> None:
        super().__init__()
        self.found = [node if isinstance(node, NodeWithScore) else scored(node) for node in found]

    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return list(self.found)


def scored(node: Any, score: float | None = 0.8, **fields: Any) -> NodeWithScore:
    node = TextNode(text=node, **fields) if isinstance(node, str) else node
    return NodeWithScore(node=node, score=score)


def index(*documents: Any, **settings: Any) -> VectorStoreIndex:
    """A vector index over texts or documents."""
    made = [Document(text=each) if isinstance(each, str) else each for each in documents]
    return VectorStoreIndex.from_documents(made, embed_model=WordEmbedding(), **settings)


def memory(limit: int = 10_000) -> ChatMemoryBuffer:
    return ChatMemoryBuffer.from_defaults(token_limit=limit)


@contextmanager
def default_model(llm: Any = None):
    """The model that LlamaIndex takes where an application names none."""
    before = Settings._llm, Settings._embed_model
    Settings.llm, Settings.embed_model = llm or writer("Nobody asks me."), WordEmbedding()
    try:
        yield
    finally:
        Settings._llm, Settings._embed_model = before


def following() -> RagaliqSpanHandler:
    """The handler that follows the process; one that follows nothing where none does."""
    for handler in get_dispatcher().span_handlers:
        if isinstance(handler, RagaliqSpanHandler):
            return handler
    return RagaliqSpanHandler(Monitor(judge=ScriptedJudge(), sample_rate=0))
