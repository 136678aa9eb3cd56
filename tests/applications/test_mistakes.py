"""Line 16: mistakes are named where they were made."""

from functools import partial

import pytest
from langchain_parts import Finding, judging, rag
from rag_parts import QUESTION, ScriptedChatModel

from langchain_ragaliq import RagaliqCallbackHandler, RagaliqGuard, RagaliqGuardMiddleware
from llama_index.evaluation.ragaliq import GuardedQueryEngine, attach
from ragaliq import (
    ConfigurationError,
    Guard,
    Monitor,
    OnCondition,
    Sampling,
    estimate,
    evaluate,
)
from ragaliq.testing import ScriptedJudge


@pytest.mark.parametrize(
    ("called", "option", "meant"),
    [
        (RagaliqCallbackHandler, "sample_rat", "sample_rate"),
        (Monitor, "samplerate", "sample_rate"),
        (Guard, "on_unscord", "on_unscored"),
        (partial(RagaliqGuard, rag(Finding())), "on_unscord", "on_unscored"),
        (RagaliqGuardMiddleware, "max_retry", "max_retries"),
        (partial(GuardedQueryEngine, None), "fall_back", "fallback"),
        (attach, "sink", "sinks"),
        (partial(evaluate, []), "evaluators", "metrics"),
        (partial(estimate, []), "model", "judge"),
    ],
)
def test_an_unknown_option_is_refused_in_the_name_of_what_was_called(called, option, meant):
    name = getattr(called, "func", called).__name__
    with pytest.raises(TypeError, match=f"^{name} got .* '{option}' .did you mean '{meant}'"):
        called(judge=ScriptedJudge(), **{option: 0.5})


@pytest.mark.parametrize(
    ("called", "options", "message"),
    [
        (RagaliqCallbackHandler, {"redact": 1}, "redact must be a function"),
        (RagaliqCallbackHandler, {"max_runs": 0}, "max_runs must be a positive number, got 0"),
        (RagaliqCallbackHandler, {"max_age": -1}, "max_age must be a positive number, got -1"),
        (Guard, {"fallback": 3}, "Guard: fallback must be a text or a function .*, got 3"),
        (Guard, {"note": None}, "Guard: note must be a text, got None"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name(called, options, message):
    with pytest.raises(ConfigurationError, match=message):
        called(judge=ScriptedJudge(), **options)


class Question(str):
    """What no other test submits: a kind is logged once in a process."""


def test_what_is_no_case_is_logged_once_with_what_it_must_be(watch, caplog):
    for _ in range(2):
        assert not watch.monitor.submit(Question("How long do refunds take?"))
    assert dict(watch.monitor.stats().incomplete) == {"internal_error": 2}
    (said,) = caplog.messages
    assert "submit takes a RAGTestCase or a RunLog, not Question" in said
    assert "refunds" not in said


def failing(*arguments):
    raise KeyError(QUESTION)


class FailingJudge(ScriptedJudge):
    name = "failing"  # what a judge raises is logged once in a process
    extract_statements = failing


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"judge": FailingJudge()}, "faithfulness: the judge failing raised"),
        ({"on_result": failing}, "on_result raised"),
        ({"sampling": Sampling(rules=[OnCondition(failing)])}, "a sampling rule raised"),
        ({"extract": failing}, "extract failed"),
    ],
    ids=["judge", "on_result", "rule", "extract"],
)
def test_an_error_in_the_applications_own_code_is_logged_with_its_file_and_line(
    options, said, caplog
):
    handler = RagaliqCallbackHandler(**{"judge": ScriptedJudge(), **options})
    for _ in range(2):
        rag(Finding()).invoke(QUESTION, {"callbacks": [handler]})
    assert handler.monitor.close(30)
    (record,) = caplog.records
    line = failing.__code__.co_firstlineno + 1
    assert f"{said}: KeyError (test_mistakes.py, line {line})" in record.getMessage()


def test_a_paid_judge_of_every_run_without_a_budget_says_so_once(caplog):
    class Paid(ScriptedChatModel):
        """A model that no other test has as a judge."""

    judge = Paid(replies=[judging])
    for options in ({"sample_rate": 0.5}, {}, {"deadline": 9.0}):
        handler = RagaliqCallbackHandler(judge=judge, **options)
        handler.monitor.close(5)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("every run is judged by chat-model (Paid)")
