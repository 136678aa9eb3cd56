"""Line 16: mistakes are named where they were made."""

from __future__ import annotations

import pytest
from langchain_parts import Finding, judging, rag
from rag_parts import QUESTION, ScriptedChatModel

from langchain_ragaliq import RagaliqCallbackHandler, RagaliqGuard
from ragaliq import ConfigurationError, OnCondition, Sampling
from ragaliq.testing import ScriptedJudge


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sample_rat": 0.1}, TypeError, "Handler got .*'sample_rat' .did you mean 'sample_rate'"),
        ({"redact": 1}, ConfigurationError, "redact must be a function"),
        ({"max_runs": 0}, ConfigurationError, "max_runs must be a positive number, got 0"),
        ({"max_age": -1}, ConfigurationError, "max_age must be a positive number, got -1"),
    ],
)
def test_a_wrong_option_is_refused_in_the_name_of_what_was_called(options, error, message):
    with pytest.raises(error, match=message):
        RagaliqCallbackHandler(judge=ScriptedJudge(), **options)


def test_a_guard_s_wrong_option_is_refused_in_its_name():
    with pytest.raises(TypeError, match=r"RagaliqGuard got .* .did you mean 'thresholds'"):
        RagaliqGuard(rag(Finding()), judge=ScriptedJudge(), treshold=0.5)


def failing(*arguments):
    raise KeyError(QUESTION)


class FailingJudge(ScriptedJudge):
    extract_statements = failing


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"judge": FailingJudge()}, "faithfulness: the judge scripted raised"),
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
    assert f"{said}: KeyError (test_16_mistakes.py, line {line})" in record.getMessage()


def test_a_paid_judge_of_every_run_without_a_budget_says_so_once(caplog):
    class Paid(ScriptedChatModel):
        """A model that no other test has as a judge."""

    judge = Paid(replies=[judging])
    for options in ({"sample_rate": 0.5}, {}, {"deadline": 9.0}):
        handler = RagaliqCallbackHandler(judge=judge, **options)
        handler.monitor.close(5)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("every run is judged by chat-model (Paid)")
