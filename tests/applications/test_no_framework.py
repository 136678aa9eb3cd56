"""Line 18: feedback in LangSmith, and `@monitor.trace` where no framework reports runs."""

import contextvars
import functools
from operator import itemgetter
from uuid import uuid4

import pytest
from langchain_parts import REFUNDS, Finding, model, rag
from rag_parts import QUESTION

from langchain_ragaliq import RagaliqCallbackHandler
from products_receivers import LangSmithReceiver
from ragaliq import ConfigurationError, ContextChunk, JudgeRefusalError, Monitor
from ragaliq.records.langsmith import LangSmithSink
from ragaliq.testing import ScriptedJudge

CHUNK = "Refunds are paid within five days."


@pytest.fixture
def seen():
    """A monitor and the results it reports."""
    results = []
    monitor = Monitor(judge=ScriptedJudge(), on_result=results.append)
    yield monitor, results
    monitor.close(1.0)


def only(monitor, results):
    assert monitor.flush(10.0)
    (result,) = results
    return result


def test_a_function_that_answers_is_a_run_with_what_it_retrieved(seen):
    monitor, results = seen

    @monitor.trace
    def answer(question, tone="plain"):
        """Answers."""
        monitor.add_context(CHUNK, ContextChunk(text="They come in cash.", id="c7", score=0.5))
        return "Within five days."

    assert answer("How long do refunds take?") == "Within five days."
    assert (answer.__name__, answer.__doc__) == ("answer", "Answers.")
    result = only(monitor, results)
    assert (result.case.query, result.case.response) == (
        "How long do refunds take?",
        "Within five days.",
    )
    assert result.case.context_texts == [CHUNK, "They come in cash."]
    assert (result.case.context[1].id, result.case.context[1].score) == ("c7", 0.5)
    assert result.run.pipeline == "answer"


async def test_a_coroutine_function_whose_answer_is_part_of_what_it_returns(seen):
    monitor, results = seen

    @monitor.trace(pipeline="faq", question="text", answer=lambda reply: reply["answer"])
    async def reply(tenant, text):
        monitor.add_context(CHUNK)
        return {"answer": "Within five days.", "by": tenant}

    assert (await reply("shop", text="How long?"))["by"] == "shop"
    assert await monitor.aflush(10.0)
    (result,) = results
    assert (result.case.query, result.case.response) == ("How long?", "Within five days.")
    assert (result.case.context_texts, result.run.pipeline) == ([CHUNK], "faq")


@pytest.mark.parametrize(
    ("returned", "options", "asked", "reason"),
    [
        ({"answer": "x"}, {}, "q", "no_answer"),
        ("", {}, "q", "no_answer"),
        ("x", {}, 7, "no_question"),
        ("x", {}, " ", "no_question"),
        ("x", {"answer": lambda reply: reply["answer"]}, "q", "extract_failed"),
    ],
)
def test_what_makes_no_case_is_counted_with_its_reason(seen, returned, options, asked, reason):
    monitor, _ = seen
    function = monitor.trace(lambda question: returned, **options)
    assert function(asked) is returned
    assert monitor.stats().incomplete == {reason: 1}


def test_an_error_of_the_functions_is_the_applications(seen):
    monitor, _ = seen

    @monitor.trace
    def answer(question):
        raise KeyError(question)

    with pytest.raises(KeyError):
        answer("q")
    assert monitor.stats().incomplete == {"errored": 1}


def test_a_chunk_of_a_wrong_kind_is_logged_once_and_costs_no_run(seen, caplog):
    class Hit(dict):
        """Of the application's own search."""

    monitor, results = seen

    @monitor.trace
    def answer(question):
        monitor.add_context(Hit(body="secret"), CHUNK, Hit(body="secret"))
        return CHUNK

    answer("When?")
    assert only(monitor, results).case.context_texts == [CHUNK]
    (record,) = caplog.records
    assert "a Hit is ignored; give its text" in record.getMessage()


def test_outside_a_function_that_is_followed_context_goes_nowhere(seen):
    monitor, results = seen
    monitor.add_context("of another request")
    monitor.trace(lambda question: "It is so.")("q")
    assert only(monitor, results).case.context == []


def test_the_answer_of_a_generator_is_what_it_yields(seen):
    monitor, results = seen

    @monitor.trace
    def parts(question):
        monitor.add_context(CHUNK)
        yield "Within "
        yield "five days."

    assert list(parts("How long?")) == ["Within ", "five days."]
    case = only(monitor, results).case
    assert (case.response, case.context_texts) == ("Within five days.", [CHUNK])


def test_a_traced_function_inside_another_is_a_part_of_its_run(seen):
    monitor, results = seen

    @monitor.trace
    def look_up(question):
        monitor.add_context(CHUNK)
        return "five days"

    @monitor.trace
    def advise(question):
        return f"Within {look_up('refunds?')}."

    advise("How long?")
    case = only(monitor, results).case
    assert (case.query, case.response) == ("How long?", "Within five days.")
    assert case.context_texts == [CHUNK]


def test_a_question_that_is_no_parameter_is_refused(seen):
    monitor, _ = seen
    with pytest.raises(ConfigurationError, match="no parameter 'query'"):
        monitor.trace(lambda question: question, question="query")


def injected(function):
    """What passes an argument that callers do not know, and keeps the function's signature."""

    @functools.wraps(function)
    def call(question):
        return function("db", question)

    return call


class Answering:
    def __call__(self, question):
        return "It is so."


@pytest.mark.parametrize(
    "function",
    [
        injected(lambda db, question: "It is so."),
        functools.partial(lambda db, question: "It is so.", "db"),
        Answering(),
    ],
    ids=["another signature", "partial", "object"],
)
def test_what_is_called_like_a_function_is_followed_like_one(seen, function):
    monitor, results = seen
    assert monitor.trace(function)("How long?") == "It is so."
    assert only(monitor, results).case.query == "How long?"


def test_a_call_that_is_dropped_in_another_context_raises_nothing(seen):
    monitor, _ = seen

    class Waiting:
        def __await__(self):
            yield

    @monitor.trace
    async def answer(question):
        await Waiting()

    call = answer("q")
    contextvars.copy_context().run(call.send, None)
    call.close()
    assert monitor.stats().incomplete == {"cancelled": 1}


@pytest.fixture
def langsmith():
    receiver = LangSmithReceiver()
    yield receiver
    receiver.stop()


def test_a_runs_scores_are_feedback_on_the_run_of_langsmiths_own_tracer(langsmith):
    traced, project = uuid4(), str(uuid4())
    judge = ScriptedJudge(failures={"evaluate_relevance": JudgeRefusalError("no")})
    sink = LangSmithSink(langsmith.url, api_key="key", workspace_id="w", project_id=project)
    handler = RagaliqCallbackHandler(
        judge=judge, metrics=["faithfulness", "relevance"], sinks=[sink]
    )
    rag(Finding(), model(f"{REFUNDS} Parking is free.")).invoke(
        QUESTION, {"callbacks": [handler], "run_id": traced}
    )
    assert handler.monitor.close(30)
    scored, failed = sorted(langsmith.kept.values(), key=itemgetter("key"))
    assert {each["run_id"] for each in (scored, failed)} == {str(traced)}
    assert {each["session_id"] for each in (scored, failed)} == {project}
    assert (scored["key"], scored["score"]) == ("faithfulness", 0.5)
    assert scored["comment"] == "1 of 2 claims supported"
    assert scored["feedback_source"]["metadata"]["ragaliq.claims.not_enough_info"] == 1
    assert (failed["key"], failed["score"], failed["value"]) == ("relevance", None, "judge_refused")
    assert langsmith.requests[0][2]["x-tenant-id"] == "w"
