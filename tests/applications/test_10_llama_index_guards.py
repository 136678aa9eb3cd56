"""Line 10: guards around LlamaIndex engines, agents and workflows."""

from contextlib import nullcontext

import pytest
from llama_index.core.base.response.schema import Response
from llama_index.core.query_engine import CustomQueryEngine, SubQuestionQueryEngine
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.tools import FunctionTool, QueryEngineTool
from llama_index.core.workflow import (
    HumanResponseEvent,
    InputRequiredEvent,
    StartEvent,
    StopEvent,
    Workflow,
    step,
)
from llama_index_parts import HOURS, QUESTION, REFUNDS, Reply, Search, agent, engine, memory, model

from llama_index.evaluation.ragaliq import GuardedQueryEngine, GuardedWorkflow
from ragaliq import ConfigurationError, GuardRejected
from ragaliq.testing import ScriptedJudge

INVENTED = "Refunds take nine weeks."

# Building an agent makes LlamaIndex look at every attribute of a pydantic model.
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")


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


@pytest.fixture
def guarded(loop_of_synchronous_calls):
    made = []

    def build(asked, **options):
        guard = GuardedWorkflow if isinstance(asked, Workflow) else GuardedQueryEngine
        made.append(guard(asked, **{"judge": ScriptedJudge(), "fallback": FALLBACK, **options}))
        return made[-1]

    yield build
    for each in made:
        each.guard.monitor.close(1.0)


def test_a_models_intermediate_answer_does_not_support_itself(guarded):
    tool = QueryEngineTool.from_defaults(
        engine(REFUNDS, llm=model(INVENTED)), name="policy", description="Policy."
    )
    inner = SubQuestionQueryEngine(
        ByWord(), get_response_synthesizer(llm=model(INVENTED)), [tool], use_async=False
    )
    assert guarded(inner).query(QUESTION).response == FALLBACK


def test_an_engine_that_returns_a_text_is_checked(guarded):
    class Plain(CustomQueryEngine):
        def custom_query(self, query_str):
            found = Search(REFUNDS).retrieve(query_str)
            return str(model(INVENTED).complete(f"{found[0].text}\n\n{query_str}"))

    assert guarded(Plain()).query(QUESTION).response == FALLBACK


def test_a_structured_answer_is_guarded_by_its_text(guarded):
    for said, shown in ((INVENTED, FALLBACK), (REFUNDS, REFUNDS)):
        llm = model(("Reply", {"answer": said, "confidence": 0.9}))
        response = guarded(engine(REFUNDS, llm=llm, output_cls=Reply)).query(QUESTION).response
        assert getattr(response, "answer", response) == shown


def clerk(*replies):
    def policy(topic: str) -> str:
        return f"{REFUNDS} {HOURS}"

    call = ("policy", {"topic": "refunds"})
    llm = model(*(step for reply in replies for step in (call, reply)))
    return agent(FunctionTool.from_defaults(policy), llm=llm)


@pytest.mark.parametrize(
    ("replies", "action", "kept"),
    [
        ([REFUNDS], "fallback", [QUESTION, "", f"{REFUNDS} {HOURS}", REFUNDS]),
        ([INVENTED], "fallback", [QUESTION, FALLBACK]),
        ([INVENTED, REFUNDS], "retry", [QUESTION, REFUNDS]),
        ([INVENTED], "raise", []),
    ],
)
async def test_what_an_agent_answers_and_its_conversation_keeps(guarded, replies, action, kept):
    conversation, made = memory(), guarded(clerk(*replies), action=action)
    with nullcontext() if kept else pytest.raises(GuardRejected):
        output = await made.run(user_msg=QUESTION, memory=conversation)
        assert (type(output).__name__, str(output)) == ("AgentOutput", kept[-1])
    assert [message.content for message in conversation.get_all()] == kept
    assert made.guard.monitor.stats().outcomes == {"evaluated": len(replies)}


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


async def test_a_workflow_that_waits_for_a_human_is_refused_and_not_left_waiting(guarded):
    class Asking(Workflow):
        @step
        async def ask(self, ev: StartEvent) -> InputRequiredEvent:
            return InputRequiredEvent(prefix="May I?")

        @step
        async def answer(self, ev: HumanResponseEvent) -> StopEvent:
            return StopEvent(result=ev.response)

    with pytest.raises(ConfigurationError, match=r"waits for a human \(InputRequiredEvent\)"):
        await guarded(Asking()).run(query=QUESTION)


async def test_a_guarded_agents_answer_is_scored_once(guarded, runs):
    for reply in (REFUNDS, INVENTED):
        await guarded(clerk(reply)).run(user_msg=QUESTION, memory=memory())
    with pytest.raises(GuardRejected):
        await guarded(clerk(INVENTED), action="raise").run(user_msg=QUESTION, memory=memory())
    assert (runs.cases, runs.outcomes) == ([], {})
