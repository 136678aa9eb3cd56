"""Line 9: the runs of LlamaIndex engines, agents and workflows."""

from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import pytest
from llama_index.core import Document, DocumentSummaryIndex, MockEmbedding, SQLDatabase
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.evaluation import FaithfulnessEvaluator as LlamaFaithfulnessEvaluator
from llama_index.core.query_engine import NLSQLTableQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index_parts import (
    ANSWER,
    HOURS,
    PARKING,
    QUESTION,
    REFUNDS,
    Search,
    agent,
    engine,
    memory,
    model,
)
from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, insert
from sqlalchemy.pool import StaticPool

# Building an agent makes LlamaIndex look at every attribute of a pydantic model.
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")


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
    assert runs.stats().started == 0


async def test_what_a_tool_asks_in_threads_of_its_own_are_runs_of_their_own(runs):
    def policy(topics: str) -> str:
        with ThreadPoolExecutor(2) as pool:
            return "\n".join(map(str, pool.map(engine(REFUNDS, HOURS).query, topics.split())))

    llm = model(("policy", {"topics": "refunds hours"}), "All in all: five days.")
    await agent(FunctionTool.from_defaults(policy), llm=llm).run(user_msg=QUESTION, memory=memory())
    assert sorted((case.query, case.context_texts) for case in runs.cases) == [
        (QUESTION, [f"{ANSWER}\n{ANSWER}"]),
        ("hours", [REFUNDS, HOURS]),
        ("refunds", [REFUNDS, HOURS]),
    ]


async def test_what_others_ask_while_a_tool_runs_is_a_run_of_its_own(runs):
    asked = []

    def policy(topic: str) -> str:
        thread = Thread(target=lambda: asked.append(str(engine(HOURS).query("When?"))))
        thread.start()
        thread.join()
        assert runs.stats().started == 2
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
