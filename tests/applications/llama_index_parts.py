"""Parts of LlamaIndex applications: what is found, a model that replies, engines and agents."""

from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

QUESTION = "How long do refunds take?"


REFUNDS = "Refunds take five days."


HOURS = "The shop opens at nine."


PARKING = "Parking costs two euros an hour."


ANSWER = "It takes five days until the money is back."


class Model(CustomLLM, FunctionCallingLLM):
    """Replies with what `reply` makes of the messages: a text, or a tool's name and arguments."""

    reply: Callable[[str], Any]
    is_chat_model: bool = False

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            is_function_calling_model=True,
            is_chat_model=self.is_chat_model,
            context_window=100_000,
        )

    def _message(self, prompt: str) -> ChatMessage:
        said = self.reply(prompt)
        if isinstance(said, str):
            return ChatMessage(role=MessageRole.ASSISTANT, content=said)
        return ChatMessage(
            role=MessageRole.ASSISTANT, content="", additional_kwargs={"tool_calls": [said]}
        )

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return ChatResponse(message=self._message("\n".join(map(str, messages))))

    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        reply = self.chat(messages)
        yield ChatResponse(message=reply.message, delta=reply.message.content)

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self.chat(messages)

    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        reply = self.chat(messages)

        async def stream() -> Any:
            yield ChatResponse(message=reply.message, delta=reply.message.content)

        return stream()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self._message(prompt).content or "")

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        yield CompletionResponse(text=(text := self._message(prompt).content or ""), delta=text)

    def _prepare_chat_with_tools(self, tools, user_msg=None, chat_history=None, **kwargs):
        return {"messages": [*(chat_history or ()), *([user_msg] if user_msg else ())]}

    def get_tool_calls_from_response(self, response, *args, **kwargs):
        calls = response.message.additional_kwargs.get("tool_calls", ())
        return [
            ToolSelection(tool_id=name, tool_name=name, tool_kwargs=given) for name, given in calls
        ]


def model(*replies: Any, **options: Any) -> Model:
    """Gives these replies in turn; the last one again and again."""
    left = list(replies)
    return Model(reply=lambda prompt: left.pop(0) if len(left) > 1 else left[0], **options)


class Search(BaseRetriever):
    """Finds these texts, whatever is asked."""

    def __init__(self, *texts: str) -> None:
        super().__init__()
        self.texts = texts

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text=text), score=0.5) for text in self.texts]


class KeepFirst(BaseNodePostprocessor):
    """Drops all but the first node, as a reranker with `top_n=1` does."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        return nodes[:1]


def engine(*texts: str, llm: Any = None, **settings: Any) -> RetrieverQueryEngine:
    llm = llm or model(ANSWER)
    return RetrieverQueryEngine.from_args(Search(*texts), llm=llm, **settings)


def memory() -> ChatMemoryBuffer:
    """LlamaIndex's default leaves a database connection open."""
    return ChatMemoryBuffer.from_defaults(token_limit=10_000, tokenizer_fn=str.split)


def agent(*tools: Any, llm: Any) -> FunctionAgent:
    return FunctionAgent(tools=list(tools), llm=llm, name="clerk", description="Answers.")


class Reply(BaseModel):
    answer: str
    confidence: float
