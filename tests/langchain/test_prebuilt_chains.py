"""Chains that LangChain ships, the current ones and the legacy ones."""

import pytest
from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
from langchain_classic.chains import ConversationalRetrievalChain, RetrievalQA
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.tools import create_retriever_tool
from rag_parts import (
    ANSWER,
    HISTORY,
    QUESTION,
    REFUNDS,
    FixedRetriever,
    calling,
    history_aware_retriever,
    model,
    retrieval_chain,
)

EXPECTED = (QUESTION, REFUNDS, ANSWER)


def test_create_retrieval_chain_streamed(watch, stream):
    chunks = stream(retrieval_chain(), {"input": QUESTION}, watch.config)
    assert "".join(chunk.get("answer", "") for chunk in chunks) == ANSWER
    assert watch.only == EXPECTED


@pytest.mark.parametrize("history", [HISTORY, []])
def test_with_history_the_question_is_the_users_not_the_rewritten_one(watch, invoke, history):
    inputs = {"input": QUESTION, "chat_history": history}
    invoke(retrieval_chain(history_aware_retriever()), inputs, watch.config)
    assert watch.only == EXPECTED


def test_with_history_and_streamed(watch, stream):
    inputs = {"input": QUESTION, "chat_history": HISTORY}
    stream(retrieval_chain(history_aware_retriever()), inputs, watch.config)
    assert watch.only == EXPECTED


@pytest.mark.parametrize("with_sources", [True, False])
@pytest.mark.parametrize("chain_type", ["stuff", "map_reduce"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_legacy_retrieval_qa(watch, invoke, with_sources, chain_type):
    qa = RetrievalQA.from_chain_type(
        model(custom_get_token_ids=lambda text: [0] * len(text.split())),
        chain_type=chain_type,
        retriever=FixedRetriever(),
        return_source_documents=with_sources,
    )
    assert invoke(qa, {"query": QUESTION}, watch.config)["result"] == ANSWER
    assert watch.only == EXPECTED


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_legacy_conversational_chain(watch, invoke):
    conversation = ConversationalRetrievalChain.from_llm(
        model(),
        FixedRetriever(),
        condense_question_llm=model("refund duration"),
    )
    inputs = {"question": QUESTION, "chat_history": [("Hello", "Hi")]}
    assert invoke(conversation, inputs, watch.config)["answer"] == ANSWER
    assert watch.only == EXPECTED


def test_legacy_agent_executor(watch, invoke):
    prompt = ChatPromptTemplate.from_messages(
        [("human", "{input}"), MessagesPlaceholder("agent_scratchpad")]
    )
    tools = [create_retriever_tool(FixedRetriever(), "search", "Searches.")]
    agent = create_tool_calling_agent(model(calling("search", query="r"), ANSWER), tools, prompt)
    executor = AgentExecutor(agent=agent, tools=tools)
    assert invoke(executor, {"input": QUESTION}, watch.config)["output"] == ANSWER
    assert watch.only == EXPECTED


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_message_history_kept_by_langchain(watch, invoke):
    histories = {}
    prompt = ChatPromptTemplate.from_messages(
        [("system", "{context}"), MessagesPlaceholder("history"), ("human", "{question}")]
    )
    conversation = RunnableWithMessageHistory(
        {
            "context": (lambda inputs: inputs["question"]) | FixedRetriever(),
            "history": lambda inputs: inputs["history"],
            "question": lambda inputs: inputs["question"],
        }
        | prompt
        | model("First answer.", ANSWER),
        lambda session_id: histories.setdefault(session_id, InMemoryChatMessageHistory()),
        input_messages_key="question",
        history_messages_key="history",
    )
    config = {**watch.config, "configurable": {"session_id": "s-7"}}
    invoke(conversation, {"question": "Hello?"}, config)
    invoke(conversation, {"question": QUESTION}, config)
    assert watch.triples == [("Hello?", REFUNDS, "First answer."), EXPECTED]
    assert {result.run.session_id for result in watch.results} == {"s-7"}


def test_a_prompt_without_the_usual_names(watch, invoke):
    prompt = ChatPromptTemplate.from_template("Knowledge: {knowledge}\nAsk: {ask}")
    odd = {"knowledge": FixedRetriever(), "ask": lambda q: q} | prompt | model()
    invoke(odd, QUESTION, watch.config)
    assert watch.only == EXPECTED
