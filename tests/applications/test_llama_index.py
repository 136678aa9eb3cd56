"""LlamaIndex applications as people write them: what is judged is what the model was shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any

import pytest
from llama_index.core import Document, DocumentSummaryIndex, MockEmbedding, SQLDatabase
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.base.response.schema import Response
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.evaluation import FaithfulnessEvaluator as LlamaFaithfulnessEvaluator
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import (
    CustomQueryEngine,
    NLSQLTableQueryEngine,
    RetrieverQueryEngine,
    SubQuestionQueryEngine,
)
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import FunctionTool, QueryEngineTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, insert
from sqlalchemy.pool import StaticPool

from llama_index.evaluation.ragaliq import (
    GuardedQueryEngine,
    GuardedWorkflow,
    attach,
    detach,
)
from ragaliq import GuardRejected
from ragaliq.testing import ScriptedJudge

# Building an agent makes LlamaIndex look at every attribute of a pydantic model.
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")

QUESTION = "How long do refunds take?"
REFUNDS = "Refunds take five days."
HOURS = "The shop opens at nine."
PARKING = "Parking costs two euros an hour."
ANSWER = "It takes five days until the money is back."


class Model(CustomLLM, FunctionCallingLLM):
    """Replies with what `reply` makes of the messages: a text, or a tool's name and arguments."""

    reply: Callable[[str], Any]

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, context_window=100_000)

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


def model(*replies: Any) -> Model:
    """Gives these replies in turn; the last one again and again."""
    left = list(replies)
    return Model(reply=lambda prompt: left.pop(0) if len(left) > 1 else left[0])


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


class Runs:
    """What was evaluated, and how the other runs ended."""

    def __init__(self) -> None:
        self.results: list[Any] = []
        self.handler = attach(judge=ScriptedJudge(), on_result=self.results.append)

    @property
    def cases(self) -> list[Any]:
        assert self.handler.monitor.flush(10)
        assert self.handler.errors == 0
        return [result.case for result in self.results]

    @property
    def outcomes(self) -> dict[str, int]:
        assert self.handler.monitor.flush(10)
        return dict(self.handler.monitor.stats().outcomes)

    @property
    def only(self) -> tuple[str, list[str], str]:
        """Question, sorted contexts and answer of the one run there was."""
        (case,) = self.cases
        assert self.handler.monitor.stats().started == 1
        return case.query, sorted(case.context_texts), case.response


@pytest.fixture
def runs(loop_of_synchronous_calls):
    watched = Runs()
    yield watched
    detach()
    watched.handler.monitor.close(1.0)


# --- the context is what the model was shown ------------------------------------------------------


async def test_the_nodes_of_several_reranked_searches_count(runs):
    class Rag(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            found = []
            for search in (Search(REFUNDS, PARKING), Search(HOURS, PARKING)):
                found += KeepFirst().postprocess_nodes(await search.aretrieve(ev.query))
            told = "\n".join(node.text for node in found)
            reply = await model(ANSWER).acomplete(f"{told}\n\n{ev.query}")
            return StopEvent(result=reply.text)

    await Rag().run(query=QUESTION)
    assert runs.only == (QUESTION, [REFUNDS, HOURS], ANSWER)


async def test_what_was_searched_but_not_shown_does_not_count(runs):
    class Grading(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            kept = []
            for node in await Search(REFUNDS, PARKING).aretrieve(ev.query):
                verdict = "yes" if "Refunds" in node.text else "no"
                grade = await model(verdict).acomplete(f"Is this relevant? {node.text}")
                if grade.text == "yes":
                    kept.append(node.text)
            reply = await model(ANSWER).acomplete(f"{kept[0]}\n\n{ev.query}")
            return StopEvent(result=reply.text)

    await Grading().run(query=QUESTION)
    assert runs.only == (QUESTION, [REFUNDS], ANSWER)


async def test_an_ordinary_tools_output_is_context(runs):
    def balance(customer: str) -> str:
        return "The refund of 12 euros is on its way."

    llm = model(("balance", {"customer": "7"}), "12 euros are on their way.")
    await agent(FunctionTool.from_defaults(balance), llm=llm).run(
        user_msg="Where is my refund?", memory=memory()
    )
    assert runs.only == (
        "Where is my refund?",
        ["The refund of 12 euros is on its way."],
        "12 euros are on their way.",
    )


async def test_what_an_agent_found_in_an_earlier_turn_is_in_its_history(runs):
    def policy(topic: str) -> str:
        return f"{topic}: five days."

    replies = [("policy", {"topic": "Refunds"}), ANSWER, ("policy", {"topic": "Parcels"}), "Five."]
    clerk = agent(FunctionTool.from_defaults(policy), llm=model(*replies))
    kept = memory()
    for question in (QUESTION, "And parcels?"):
        await clerk.run(user_msg=question, memory=kept)
    _, case = runs.cases
    assert (case.query, case.context_texts) == ("And parcels?", ["Parcels: five days."])
    assert [(turn.role, turn.text, turn.context) for turn in case.history] == [
        ("user", QUESTION, []),
        ("assistant", ANSWER, ["Refunds: five days."]),
    ]


async def test_an_agent_that_uses_no_tool_is_no_rag(runs):
    def balance(customer: str) -> str:
        return "nothing"

    await agent(FunctionTool.from_defaults(balance), llm=model("Hello!")).run(
        user_msg="Hello?", memory=memory()
    )
    assert runs.outcomes == {"not_rag": 1}


async def test_an_engine_used_as_a_tool_is_judged_by_its_documents(runs):
    tool = QueryEngineTool.from_defaults(engine(REFUNDS), name="policy", description="Policy.")

    def balance(customer: str) -> str:
        return "The balance is 12 euros."

    llm = model(
        ("policy", {"input": "refunds"}), ("balance", {"customer": "7"}), "Five days, 12 euros."
    )
    await agent(tool, FunctionTool.from_defaults(balance), llm=llm).run(
        user_msg=QUESTION, memory=memory()
    )
    assert runs.only == (QUESTION, [REFUNDS, "The balance is 12 euros."], "Five days, 12 euros.")


async def test_a_hand_off_between_agents_is_no_evidence(runs):
    def policy(topic: str) -> str:
        return REFUNDS

    triage = FunctionAgent(
        name="triage",
        description="Routes.",
        llm=model(("handoff", {"to_agent": "clerk", "reason": "refunds take nine days"})),
        can_handoff_to=["clerk"],
    )
    clerk = agent(
        FunctionTool.from_defaults(policy), llm=model(("policy", {"topic": "refunds"}), ANSWER)
    )
    await AgentWorkflow(agents=[triage, clerk], root_agent="triage").run(
        user_msg=QUESTION, memory=memory()
    )
    assert runs.only == (QUESTION, [REFUNDS], ANSWER)


async def test_what_an_evaluator_reads_inside_a_run_is_no_context(runs):
    class Checked(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            response = await engine(REFUNDS).aquery(ev.query)
            evaluator = LlamaFaithfulnessEvaluator(llm=model("YES"))
            await evaluator.aevaluate(
                query=ev.query, response=str(response), contexts=[HOURS, REFUNDS]
            )
            return StopEvent(result=str(response))

    await Checked().run(query=QUESTION)
    assert runs.only == (QUESTION, [REFUNDS], ANSWER)


@pytest.mark.parametrize("as_nodes", [True, False])
async def test_a_workflow_that_names_its_sources_is_judged_by_them(runs, as_nodes):
    class Citing(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            found = await Search(REFUNDS, PARKING).aretrieve(ev.query)
            named = found[:1] if as_nodes else [found[0].text]
            return StopEvent(result={"answer": ANSWER, "sources": named})

    await Citing().run(query=QUESTION)
    assert runs.only == (QUESTION, [REFUNDS], ANSWER)


def test_retrieval_and_synthesis_without_an_engine_are_one_run(runs):
    found = Search(REFUNDS).retrieve(QUESTION)
    response = get_response_synthesizer(llm=model(ANSWER)).synthesize(QUESTION, nodes=found)
    assert str(response) == ANSWER
    assert runs.only == (QUESTION, [REFUNDS], ANSWER)


async def test_a_streamed_synthesis_without_an_engine_is_one_too(runs):
    found = await Search(REFUNDS).aretrieve(QUESTION)
    synthesizer = get_response_synthesizer(llm=model(ANSWER), streaming=True)
    response = await synthesizer.asynthesize(QUESTION, nodes=found)
    assert "".join([piece async for piece in response.async_response_gen()]) == ANSWER
    assert runs.only == (QUESTION, [REFUNDS], ANSWER)


def test_building_an_index_of_summaries_is_no_run(runs):
    DocumentSummaryIndex.from_documents(
        [Document(text=REFUNDS)],
        llm=model("A summary of refunds."),
        embed_model=MockEmbedding(embed_dim=4),
        response_synthesizer=get_response_synthesizer(llm=model("A summary of refunds.")),
        show_progress=False,
    )
    assert runs.handler.monitor.stats().started == 0


async def test_the_threads_of_a_tool_are_part_of_its_run(runs):
    def policy(topics: str) -> str:
        with ThreadPoolExecutor(2) as pool:
            asked = pool.map(engine(REFUNDS, HOURS).query, topics.split())
            return "\n".join(map(str, asked))

    llm = model(("policy", {"topics": "refunds hours"}), "All in all: five days.")
    await agent(FunctionTool.from_defaults(policy), llm=llm).run(user_msg=QUESTION, memory=memory())
    assert runs.only == (QUESTION, [REFUNDS, HOURS], "All in all: five days.")


async def test_what_others_ask_while_a_tool_runs_is_a_run_of_its_own(runs):
    asked = []

    def policy(topic: str) -> str:
        thread = Thread(target=lambda: asked.append(str(engine(HOURS).query("When?"))))
        thread.start()
        thread.join()
        assert runs.handler.runs_in_progress == 2
        return REFUNDS

    llm = model(("policy", {"topic": "refunds"}), "All in all: five days.")
    await agent(FunctionTool.from_defaults(policy), llm=llm).run(user_msg=QUESTION, memory=memory())
    assert asked == [ANSWER]
    assert sorted((case.query, case.context_texts) for case in runs.cases) == [
        (QUESTION, [REFUNDS]),
        ("When?", [HOURS]),
    ]


def test_a_database_is_judged_by_its_query_and_named_columns(runs):
    database = create_engine("sqlite://", poolclass=StaticPool)
    table = Table(
        "refunds",
        MetaData(),
        Column("country", String(16), primary_key=True),
        Column("days", Integer),
    )
    table.metadata.create_all(database)
    with database.begin() as connection:
        connection.execute(insert(table).values(country="Spain", days=5))
    query = "SELECT country, days FROM refunds WHERE country = 'Spain'"
    sql = NLSQLTableQueryEngine(
        SQLDatabase(database),
        tables=["refunds"],
        llm=model(query, ANSWER),
        embed_model=MockEmbedding(embed_dim=4),
    )
    sql.query(QUESTION)
    database.dispose()
    question, (context,), answer = runs.only
    assert (question, answer) == (QUESTION, ANSWER)
    assert query in context
    assert "country: Spain" in context
    assert "days: 5" in context


# --- the answer is the text that a person reads ---------------------------------------------------


class Reply(BaseModel):
    answer: str
    confidence: float


def test_a_structured_answer_is_judged_by_its_text(runs):
    llm = model(("Reply", {"answer": ANSWER, "confidence": 0.9}))
    response = engine(REFUNDS, llm=llm, output_cls=Reply).query(QUESTION)
    assert response.response.answer == ANSWER
    assert runs.only == (QUESTION, [REFUNDS], ANSWER)


async def test_so_is_an_agents(runs):
    def policy(topic: str) -> str:
        return REFUNDS

    clerk = FunctionAgent(
        tools=[FunctionTool.from_defaults(policy)],
        llm=model(("policy", {"topic": "refunds"}), ANSWER),
        structured_output_fn=lambda messages: {"answer": ANSWER, "confidence": 0.9},
    )
    output = await clerk.run(user_msg=QUESTION, memory=memory())
    assert output.structured_response["answer"] == ANSWER
    assert runs.only == (QUESTION, [REFUNDS], ANSWER)


def test_the_labels_of_accumulated_answers_are_no_claims(runs):
    llm = model("Refunds take five days, says the policy.", "The shop opens at nine, says a sign.")
    response = engine(REFUNDS, HOURS, llm=llm, response_mode="accumulate").query(QUESTION)
    assert "Response 2" in str(response)
    question, contexts, answer = runs.only
    assert (question, contexts) == (QUESTION, [REFUNDS, HOURS])
    assert answer == (
        "Refunds take five days, says the policy.\n\nThe shop opens at nine, says a sign."
    )


def test_an_empty_response_is_no_answer(runs):
    assert str(engine().query(QUESTION)) == "Empty Response"
    assert runs.outcomes == {"incomplete_run": 1}
    assert runs.handler.monitor.stats().incomplete == {"no_answer": 1}


# --- guards ---------------------------------------------------------------------------------------

INVENTED = "Refunds take nine weeks."
FALLBACK = "I do not know."


class ByWord(BaseQuestionGenerator):
    """One sub-question for each tool."""

    def generate(self, tools, query):
        return [SubQuestion(sub_question=tool.name, tool_name=tool.name) for tool in tools]

    async def agenerate(self, tools, query):
        return self.generate(tools, query)

    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts):
        pass


def test_a_models_intermediate_answer_does_not_support_itself(loop_of_synchronous_calls):
    tool = QueryEngineTool.from_defaults(
        engine(REFUNDS, llm=model(INVENTED)), name="policy", description="Policy."
    )
    inner = SubQuestionQueryEngine(
        ByWord(), get_response_synthesizer(llm=model(INVENTED)), [tool], use_async=False
    )
    guarded = GuardedQueryEngine(inner, judge=ScriptedJudge(), fallback=FALLBACK)
    assert guarded.query(QUESTION).response == FALLBACK
    guarded.guard.monitor.close(1.0)


def test_an_engine_that_returns_a_text_is_checked(loop_of_synchronous_calls):
    class Plain(CustomQueryEngine):
        def custom_query(self, query_str):
            found = Search(REFUNDS).retrieve(query_str)
            return str(model(INVENTED).complete(f"{found[0].text}\n\n{query_str}"))

    guarded = GuardedQueryEngine(Plain(), judge=ScriptedJudge(), fallback=FALLBACK)
    assert guarded.query(QUESTION).response == FALLBACK
    guarded.guard.monitor.close(1.0)


def test_a_structured_answer_is_guarded_by_its_text(loop_of_synchronous_calls):
    for said, shown in ((INVENTED, FALLBACK), (REFUNDS, REFUNDS)):
        llm = model(("Reply", {"answer": said, "confidence": 0.9}))
        guarded = GuardedQueryEngine(
            engine(REFUNDS, llm=llm, output_cls=Reply),
            judge=ScriptedJudge(),
            fallback=FALLBACK,
        )
        response = guarded.query(QUESTION).response
        assert getattr(response, "answer", response) == shown
        guarded.guard.monitor.close(1.0)


@pytest.fixture
def guarded(loop_of_synchronous_calls):
    made = []

    def build(workflow, **options):
        options = {"judge": ScriptedJudge(), "fallback": FALLBACK, **options}
        made.append(GuardedWorkflow(workflow, **options))
        return made[-1]

    yield build
    for each in made:
        each.guard.monitor.close(1.0)


def clerk(*replies):
    def policy(topic: str) -> str:
        return f"{REFUNDS} {HOURS}"

    call = ("policy", {"topic": "refunds"})
    llm = model(*(step for reply in replies for step in (call, reply)))
    return agent(FunctionTool.from_defaults(policy), llm=llm)


def contents(kept):
    return [message.content for message in kept.get_all()]


async def test_an_agents_answer_is_replaced_in_the_conversation_too(guarded):
    kept = memory()
    output = await guarded(clerk(INVENTED)).run(user_msg=QUESTION, memory=kept)
    assert str(output) == FALLBACK
    assert contents(kept) == [QUESTION, FALLBACK]


async def test_an_agent_answers_again_with_feedback(guarded):
    kept = memory()
    made = guarded(clerk(INVENTED, REFUNDS), action="retry")
    assert str(await made.run(QUESTION, memory=kept)) == REFUNDS
    assert contents(kept) == [QUESTION, REFUNDS]
    assert made.guard.monitor.stats().outcomes == {"evaluated": 2}


async def test_an_agents_answer_may_raise(guarded):
    kept = memory()
    with pytest.raises(GuardRejected):
        await guarded(clerk(INVENTED), action="raise").run(user_msg=QUESTION, memory=kept)
    assert contents(kept) == []


async def test_a_supported_answer_of_an_agent_passes_as_it_is(guarded):
    output = await guarded(clerk(REFUNDS)).run(user_msg=QUESTION, memory=memory())
    assert (type(output).__name__, str(output)) == ("AgentOutput", REFUNDS)


@pytest.mark.parametrize("shape", ["text", "dict", "response"])
async def test_a_workflow_is_guarded(guarded, shape):
    class Rag(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            found = await Search(REFUNDS).aretrieve(ev.query)
            said = (await model(INVENTED).acomplete(f"{found[0].text}\n\n{ev.query}")).text
            made = {"text": said, "dict": {"answer": said}, "response": Response(said)}
            return StopEvent(result=made[shape])

    result = await guarded(Rag()).run(query=QUESTION)
    assert str(result["answer"] if shape == "dict" else result) == FALLBACK


async def test_a_guarded_agents_answer_is_scored_once(guarded, runs):
    for reply in (REFUNDS, INVENTED):
        await guarded(clerk(reply)).run(user_msg=QUESTION, memory=memory())
    with pytest.raises(GuardRejected):
        await guarded(clerk(INVENTED), action="raise").run(user_msg=QUESTION, memory=memory())
    assert (runs.cases, runs.outcomes) == ([], {})
