"""Question, contexts and answer named by the application, where guessing finds something else."""

import logging

import pytest
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

from llama_index.evaluation.ragaliq import attach
from ragaliq import ConfigurationError

QUESTION = "How long do refunds take?"
ANSWER = "Refunds take five days."


class Wish(StartEvent):
    wish: str
    tenant: str


class Outcome(StopEvent):
    said: str
    cites: list[str]


class Unusual(Workflow):
    """Names nothing as others do."""

    @step
    async def look_up(self, event: Wish) -> Outcome:
        return Outcome(said=ANSWER, cites=["Told by a service."])


class InPairs(Workflow):
    """Stops with a pair."""

    @step
    async def look_up(self, event: StartEvent) -> StopEvent:
        return StopEvent(result=(ANSWER, [event.get("about")]))


async def test_a_function_says_all_three_of_a_workflow(monitor):
    attach(
        monitor,
        extract=lambda inputs, outputs: {
            "question": inputs["wish"],
            "contexts": outputs.cites,
            "answer": outputs.said,
        },
    )
    await Unusual().run(start_event=Wish(wish=QUESTION, tenant="shop"))
    assert monitor.only == (QUESTION, ["Told by a service."], ANSWER)


async def test_a_function_is_given_keyword_arguments_and_the_result_of_a_stop_event(monitor):
    seen = []
    attach(
        monitor,
        extract=lambda inputs, outputs: (
            seen.append((dict(inputs), outputs)) or {"contexts": outputs[1], "answer": outputs[0]}
        ),
    )
    await InPairs().run(question=QUESTION, about="Refunds.")
    assert monitor.only == (QUESTION, ["Refunds."], ANSWER)
    assert seen == [({"question": QUESTION, "about": "Refunds."}, (ANSWER, ["Refunds."]))]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"question": "Really?", "answer": "No."}, ("Really?", None, "No.")),
        ({"contexts": [TextNode(text="One."), NodeWithScore(node=TextNode(text="Two."))]},
         (QUESTION, ["One.", "Two."], ANSWER)),
        ({"contexts": {1: TextNode(text=" "), 2: "Two."}.values()}, (QUESTION, ["Two."], ANSWER)),
        ({"contexts": (each for each in ["One.", "Two."])}, (QUESTION, ["One.", "Two."], ANSWER)),
        (None, (QUESTION, None, ANSWER)),
    ],
)  # fmt: skip
def test_what_a_function_does_not_say_is_guessed(engine, monitor, docs, said, expected):
    attach(monitor, extract=lambda inputs, outputs: said)
    engine().query(QUESTION)
    question, contexts, answer = expected
    assert monitor.only == (question, docs if contexts is None else contexts, answer)


def test_a_function_is_asked_about_a_stream_when_it_has_been_read(engine, monitor):
    asked = []
    attach(monitor, extract=lambda *given: asked.append(given))
    response = engine(streaming=True).query(QUESTION)
    assert asked == []
    list(response.response_gen)
    assert len(asked) == 1
    assert monitor.only[2] == ANSWER


def test_a_function_that_fails_is_not_felt_and_has_a_reason_of_its_own(engine, monitor, caplog):
    def extract(inputs, outputs):
        return inputs["nowhere"]

    handler = attach(monitor, extract=extract)
    with caplog.at_level(logging.WARNING, "ragaliq.llama_index"):
        assert str(engine().query(QUESTION)) == ANSWER
        assert str(engine().query(QUESTION)) == ANSWER
    assert monitor.outcomes == {"extract_failed": 2}
    assert handler.errors == 0
    (record,) = caplog.records
    assert ANSWER not in record.getMessage()


async def later(inputs, outputs):
    return {}


@pytest.mark.parametrize("extract", [later, "path"])
def test_what_is_no_plain_function_is_refused(monitor, extract):
    with pytest.raises(ConfigurationError, match="extract"):
        attach(monitor, extract=extract)


def test_an_interrupt_inside_the_function_ends_the_run(monitor, engine):
    def interrupted(inputs, outputs):
        raise KeyboardInterrupt

    attach(monitor, extract=interrupted)
    engine().query(QUESTION)  # LlamaIndex drops whatever a handler raises
    assert (monitor.outcomes, monitor.stats().pending) == ({"interrupted": 1}, 0)
