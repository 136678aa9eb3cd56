"""Documents that models are given to cite, and what they cite of them, as frameworks hold both."""

from importlib.metadata import version

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import (
    ChatMessage,
    ChatResponse,
    CitableBlock,
    CitationBlock,
    CustomLLM,
    LLMMetadata,
    TextBlock,
)
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.memory import ChatMemoryBuffer
from packaging.version import Version

from langchain_ragaliq import RagaliqCallbackHandler
from llama_index.evaluation.ragaliq import attach, detach

REFUNDS = "Refunds are paid within five days of the return."
DOGS = "Dogs are welcome in the garden."
QUESTION = "How long do refunds take, and may I bring a dog?"


def only_case(monitor, results):
    assert monitor.flush(30)
    [evaluation] = results
    raw = evaluation.results["citations"].raw_response
    return evaluation.case, [row["citation"] for row in raw["claims"]]


def cited(text, quote, place):
    citation = {
        "type": "search_result_location",
        "cited_text": quote,
        "title": "Rules",
        "search_result_index": place,
    }
    return {"type": "text", "text": text, "citations": [citation]}


def as_documents(*texts):
    return [
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": text},
            "citations": {"enabled": True},
        }
        for text in texts
    ]


def as_search_results(*texts):
    return [
        {
            "type": "search_result",
            "source": "https://shop.example/rules",
            "title": "Rules",
            "content": [{"type": "text", "text": text}],
            "citations": {"enabled": True},
        }
        for text in texts
    ]


def as_langchain_blocks(*texts):
    return [{"type": "text-plain", "text": text, "mime_type": "text/plain"} for text in texts]


QUESTION_BLOCK = {"type": "text", "text": QUESTION}
CALL = {"name": "search", "args": {"query": "rules"}, "id": "call-1"}


@pytest.mark.parametrize(
    "prompt",
    [
        [HumanMessage([*as_documents(REFUNDS, DOGS), QUESTION_BLOCK])],
        [HumanMessage([*as_search_results(REFUNDS, DOGS), QUESTION_BLOCK])],
        [HumanMessage([*as_langchain_blocks(REFUNDS, DOGS), QUESTION_BLOCK])],
        [
            HumanMessage(QUESTION),
            AIMessage("", tool_calls=[CALL]),
            ToolMessage(as_search_results(REFUNDS, DOGS), tool_call_id="call-1"),
        ],
    ],
    ids=["documents", "search results", "LangChain's own", "a tool's search results"],
)
def test_langchain_documents_given_to_cite_are_the_context(prompt, monitor, results):
    reply = AIMessage([cited(f"{REFUNDS} ", REFUNDS, 0), cited(DOGS, REFUNDS, 0)])
    model = GenericFakeChatModel(messages=iter([reply]))
    chain = RunnableLambda(lambda asked: prompt) | model
    config = {"callbacks": [RagaliqCallbackHandler(monitor)]}
    chain.invoke({"question": QUESTION}, config)
    case, worths = only_case(monitor, results)
    assert (case.query, case.context_texts) == (QUESTION, [REFUNDS, DOGS])
    assert worths == ["supported", "misattributed"]


def citation_block(quote):
    return CitationBlock(
        cited_content=quote, source="rules.md", title="Rules", additional_location_info={}
    )


class CitingModel(CustomLLM):
    """Answers in blocks, in the order in which LlamaIndex's Anthropic client puts them."""

    @property
    def metadata(self):
        return LLMMetadata(is_chat_model=True)

    @llm_chat_callback()
    def chat(self, messages, **kwargs):
        blocks = [
            TextBlock(text=REFUNDS),
            citation_block(REFUNDS),
            TextBlock(text=DOGS),
            citation_block(REFUNDS),
        ]
        return ChatResponse(message=ChatMessage(role="assistant", blocks=blocks))

    @llm_chat_callback()
    def stream_chat(self, messages, **kwargs):
        blocks = []
        for text in (REFUNDS, DOGS):
            blocks += [citation_block(REFUNDS), TextBlock(text=text)]
            message = ChatMessage(role="assistant", blocks=list(blocks))
            yield ChatResponse(message=message, delta=text if len(blocks) == 2 else f"\n{text}")

    def complete(self, prompt, formatted=False, **kwargs):
        raise NotImplementedError

    stream_complete = complete


@pytest.mark.filterwarnings("ignore:There is no current event loop:DeprecationWarning")
@pytest.mark.parametrize("is_streamed", [False, True])
def test_llama_index_citation_blocks_are_citations(is_streamed, monitor, results):
    if is_streamed and Version(version("llama-index-core")) < Version("0.14.24"):
        pytest.skip("a streaming chat engine fails there with a reply of several blocks")
    documents = [
        CitableBlock(title="Rules", source="rules.md", content=text) for text in (REFUNDS, DOGS)
    ]
    given = ChatMessage(role="system", blocks=[TextBlock(text="Cite these."), *documents])
    engine = SimpleChatEngine.from_defaults(
        llm=CitingModel(),
        prefix_messages=[given],
        memory=ChatMemoryBuffer.from_defaults(token_limit=10_000),
    )
    attach(monitor)
    try:
        if is_streamed:
            "".join(engine.stream_chat(QUESTION).response_gen)
        else:
            engine.chat(QUESTION)
    finally:
        detach()
    case, worths = only_case(monitor, results)
    assert case.context_texts == [REFUNDS, DOGS]
    assert [(case.response[c.start : c.end].strip(), c.quote) for c in case.citations] == [
        (REFUNDS, REFUNDS),
        (DOGS, REFUNDS),
    ]
    assert worths == ["supported", "misattributed"]


def test_a_context_that_the_application_names_has_its_conversation(monitor, results):
    model = GenericFakeChatModel(messages=iter([AIMessage("You live in Norway.")]))
    chain = RunnableLambda(lambda asked: [*asked["history"], HumanMessage("And refunds?")]) | model
    handler = RagaliqCallbackHandler(
        monitor, extract=lambda inputs, outputs: {"question": "And refunds?", "contexts": [DOGS]}
    )
    history = [HumanMessage("I live in Norway."), AIMessage("Good.")]
    chain.invoke({"history": history}, {"callbacks": [handler]})
    assert monitor.flush(30)
    [evaluation] = results
    assert evaluation.case.context_texts == [DOGS]
    assert [turn.text for turn in evaluation.case.history] == ["I live in Norway.", "Good."]
