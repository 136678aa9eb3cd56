"""Runs without an answer, in parts or out of sight: every door says the same of them."""

import asyncio
from contextlib import suppress

import pytest
from doors import as_bytes
from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware, ToolCallLimitMiddleware
from langchain.tools import tool
from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_shapes import Library, fetch, generate, graph
from langgraph.checkpoint.memory import InMemorySaver
from llama_index.core.tools import FunctionTool
from llama_index_shapes import AT_LENGTH, StudyWithSources, agent_that_hands_on, engine, policy
from llama_index_shapes import QUESTION as LLAMA_QUESTION
from openinference.instrumentation import TraceConfig
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import SpanLimits
from rag_parts import ANSWER, PROMPT, QUESTION, BrokenRetriever, calling, joined, model, rag_chain

# OpenInference reads messages and settings in the old way.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.usefixtures("loop_of_synchronous_calls"),
]


class Hanging(FakeListChatModel):
    """Never answers, and leaves its span open when it is given up."""

    async def _agenerate(self, *args, **kwargs):
        await asyncio.Event().wait()


async def test_a_model_given_up_for_a_faster_one(doors, langchain):
    slow = PROMPT | Hanging(responses=[""])

    async def hurry(inputs):
        with suppress(TimeoutError):
            await asyncio.wait_for(slow.ainvoke(inputs), 0.02)
        return await (PROMPT | model() | StrOutputParser()).ainvoke(inputs)

    sources = {"context": Library() | joined, "question": RunnablePassthrough()}
    await (sources | RunnableLambda(hurry)).ainvoke(QUESTION, langchain)
    live, seen, read = await asyncio.to_thread(doors.cases)
    assert list(map(as_bytes, live)) == list(map(as_bytes, seen)) == list(map(as_bytes, read))
    assert [case.response for case in live] == [ANSWER]


def test_a_batch_in_threads_below_one_request(doors, langchain):
    questions = [f"Question {n}?" for n in range(5)]
    with doors.provider.get_tracer("web").start_as_current_span("POST /ask"):
        rag_chain(Library()).batch(questions, langchain)
    live, seen, read = (sorted(map(as_bytes, cases)) for cases in doors.cases())
    assert live == seen == read
    assert len(live) == 5


def test_parts_called_one_by_one_in_a_request(doors):
    tracer = doors.provider.get_tracer("web")
    with doors.of(LangChainInstrumentor()), tracer.start_as_current_span("POST /ask"):
        found = Library().invoke(QUESTION)
        model().invoke(PROMPT.invoke({"context": joined(found), "question": QUESTION}))
    _, (seen,), (read,) = doors.cases()
    assert as_bytes(seen) == as_bytes(read)
    assert seen.has_context
    assert doors.watching.stats().started == 1


@pytest.mark.usefixtures("llama_index")
def test_a_streamed_llama_index_answer_is_in_no_span(doors):
    list(engine(streaming=True).query(LLAMA_QUESTION).response_gen)
    (live,), seen, read = doors.cases()
    assert live.response
    assert seen == read == []
    assert doors.watching.stats().incomplete == doors.skipped == {"answer_streamed": 1}


@pytest.mark.usefixtures("llama_index")
async def test_a_workflow_s_answer_of_which_spans_hold_the_beginning_is_not_judged_in_part(doors):
    await StudyWithSources().run(question=LLAMA_QUESTION)
    (live,), seen, read = await asyncio.to_thread(doors.cases)
    assert live.response.endswith(AT_LENGTH)
    assert seen == read == []
    assert doors.watching.stats().incomplete == doors.skipped == {"attributes_cut": 1}


def test_the_results_speak_of_the_same_span(doors, langchain):
    rag_chain(Library()).invoke(QUESTION, langchain)
    _, _, (case,) = doors.cases()
    (root,) = [span for span in doors.exporter.get_finished_spans() if span.parent is None]
    (live,) = doors.live
    run = case.run
    assert run.target == live.target
    assert live.target.span_id == f"{root.context.span_id:016x}"
    assert (run.pipeline, run.framework) == (live.run.pipeline, live.run.framework)
    assert case.id == f"{root.context.trace_id:032x}-{root.context.span_id:016x}"


def instrumented(doors, **config):
    """Why a traced chain gives no case."""
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=doors.provider, skip_dep_check=True, **config)
    try:
        rag_chain(Library()).invoke(QUESTION)
    finally:
        instrumentor.uninstrument()
    assert doors.cases() == ([], [], [])
    assert doors.watching.stats().incomplete == doors.skipped
    return doors.skipped


@pytest.mark.parametrize("hidden", ["hide_inputs", "hide_outputs"])
def test_hidden_content_is_no_content(doors, hidden):
    config = TraceConfig(**{hidden: True})
    assert instrumented(doors, config=config) == {"content_hidden": 1}


@pytest.mark.parametrize(
    "limits", [SpanLimits(max_span_attributes=6), SpanLimits(max_span_attribute_length=60)]
)
def test_what_the_sdk_cut_is_no_case(limits, doors):
    doors.provider._span_limits = limits
    assert instrumented(doors) == {"attributes_cut": 1}


class Slow(Library):
    """Tells when it is asked, and never answers."""

    async def _aget_relevant_documents(self, query, *, run_manager):
        self.metadata["asked"].set()
        await asyncio.Event().wait()


def fail(config):
    with pytest.raises(ConnectionError):
        rag_chain(BrokenRetriever()).invoke(QUESTION, config)


def close_the_stream(config):
    stream = rag_chain(Library()).stream(QUESTION, config)
    next(stream)
    stream.close()


async def cancel(config):
    asked = asyncio.Event()
    chain = rag_chain(Slow(metadata={"asked": asked}))
    task = asyncio.create_task(chain.ainvoke(QUESTION, config))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def leave_the_stream(config):
    stream = rag_chain(Library()).astream(QUESTION, config)
    await anext(stream)
    await stream.aclose()


def test_an_answer_that_a_thread_kept_is_not_the_next_questions(doors, langchain):
    rag = graph(fetch, generate, checkpointer=InMemorySaver())
    config = {**langchain, "configurable": {"thread_id": "t-1"}}
    rag.invoke({"question": "What is new?"}, config)
    rag.interrupt_before_nodes = ["generate"]
    assert rag.invoke({"question": QUESTION}, config)["generation"] == ANSWER
    for cases in doors.cases():
        assert [case.query for case in cases] == ["What is new?"]
    incomplete = doors.monitor.stats().incomplete
    assert doors.watching.stats().incomplete == doors.skipped == incomplete == {"no_answer": 1}


@tool
def look_up(query: str) -> str:
    """Searches."""
    return joined(Library().invoke(query))


def limited(limit):
    agent = create_agent(model(calling("look_up", query="refunds")), [look_up], middleware=[limit])
    return lambda config: agent.invoke({"messages": [("user", QUESTION)]}, config)


def stop_the_executor(config):
    prompt = ChatPromptTemplate([("user", "{input}"), ("placeholder", "{agent_scratchpad}")])
    llm = model(calling("look_up", query="refunds"))
    agent = create_tool_calling_agent(llm, [look_up], prompt)
    AgentExecutor(agent=agent, tools=[look_up], max_iterations=1).invoke(
        {"input": QUESTION}, config
    )


@pytest.mark.parametrize(
    "end",
    [
        limited(ModelCallLimitMiddleware(run_limit=2)),
        limited(ToolCallLimitMiddleware(run_limit=1, exit_behavior="end")),
        limited(ToolCallLimitMiddleware(tool_name="look_up", run_limit=1, exit_behavior="end")),
        stop_the_executor,
    ],
)
def test_an_agent_that_reached_a_limit_has_not_answered(end, doors, langchain):
    end(langchain)
    doors.assert_without_case()
    assert doors.skipped == {"no_answer": 1}


@tool(return_direct=True)
def list_files(query: str) -> str:
    """Lists files."""
    return "refunds.md, shipping.md"


def test_what_a_model_said_before_it_called_a_tool_is_no_answer(doors, langchain):
    call = calling("list_files", query="refunds").model_copy(update={"content": "I will look."})
    create_agent(model(call), [list_files]).invoke({"messages": [("user", QUESTION)]}, langchain)
    doors.assert_without_case()
    assert doors.skipped == {"no_answer": 1}


@pytest.mark.usefixtures("llama_index")
async def test_a_tools_text_that_is_the_answer_as_it_is_is_no_answer(doors):
    await agent_that_hands_on(FunctionTool.from_defaults(policy))
    await asyncio.to_thread(doors.assert_without_case)
    assert doors.skipped == {"no_answer": 1}


@pytest.mark.parametrize("end", [fail, close_the_stream])
def test_a_run_without_an_answer_has_the_same_reason(end, doors, langchain):
    end(langchain)
    doors.assert_without_case()


@pytest.mark.parametrize("end", [cancel, leave_the_stream])
async def test_an_asynchronous_run_without_an_answer_has_the_same_reason(end, doors, langchain):
    await end(langchain)
    async with asyncio.timeout(30):  # generators inside one that is closed are ended by the loop
        while doors.monitor.stats().pending or doors.watching.stats().pending:
            doors.processor.force_flush()
            await asyncio.sleep(0)
    await asyncio.to_thread(doors.assert_without_case)
