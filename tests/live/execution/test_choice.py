import sys
from unittest.mock import MagicMock

import pytest

from ragaliq import (
    ConfigurationError,
    Evaluator,
    FaithfulnessEvaluator,
    LLMJudge,
    LocalJudge,
    ScoringPolicy,
)
from ragaliq.testing import ScriptedJudge


class OwnJudge(LocalJudge):
    """May do anything."""


class OwnEvaluator(Evaluator):
    name = "own"

    async def measure(self, test_case, judge):
        raise NotImplementedError


class Stricter(FaithfulnessEvaluator):
    """A registered name, but another class."""


def relabelled():
    evaluator = FaithfulnessEvaluator()
    evaluator.higher_is_better = False
    return evaluator


@pytest.mark.parametrize("judge", ["local", LocalJudge()])
def test_the_embedded_judge_gets_a_process(monitor_of, judge):
    assert monitor_of(judge=judge).stats().executor == "process"


def test_an_evaluator_that_was_used_before_gets_one_too(monitor_of):
    used = FaithfulnessEvaluator(policy=ScoringPolicy.LIVE)
    assert used.fingerprint(LocalJudge())
    assert monitor_of(judge="local", metrics=[used]).stats().executor == "process"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"judge": ScriptedJudge()}, ""),
        ({"judge": OwnJudge()}, "OwnJudge"),
        ({"judge": LocalJudge(embed=list)}, "LocalJudge"),
        ({"judge": MagicMock(spec=LLMJudge)}, "MagicMock"),
        ({"metrics": [OwnEvaluator]}, "OwnEvaluator is not one of ragaliq's own"),
        ({"metrics": ["relevance", Stricter]}, ""),
        ({"metrics": [relabelled()]}, "higher_is_better"),
    ],
)
def test_what_is_no_plain_data_stays_in_the_thread_or_is_refused(monitor_of, options, named):
    options = {"judge": "local"} | options
    assert monitor_of(**options).stats().executor == "thread"
    with pytest.raises(ConfigurationError, match="executor='thread'") as refused:
        monitor_of(**options, executor="process")
    assert named in str(refused.value)


def test_the_environment_chooses_and_arguments_win(monitor_of, monkeypatch):
    monkeypatch.setenv("RAGALIQ_EXECUTOR", "thread")
    assert monitor_of(judge="local").stats().executor == "thread"
    assert monitor_of(judge="local", executor="process").stats().executor == "process"
    monkeypatch.setenv("RAGALIQ_EXECUTOR", "process")
    with pytest.raises(ConfigurationError, match="RAGALIQ_EXECUTOR"):
        monitor_of(judge=ScriptedJudge())


def test_a_broker_is_named_by_its_address(monitor_of):
    with pytest.raises(ConfigurationError, match="executor='redis:"):
        monitor_of(judge="local", executor="redis")


@pytest.mark.parametrize("executable", ["/usr/sbin/uwsgi", "", None])
def test_a_host_that_is_no_interpreter_is_never_started_again(monitor_of, monkeypatch, executable):
    monkeypatch.setattr(sys, "executable", executable)
    assert monitor_of(judge="local").stats().executor == "thread"
    with pytest.raises(ConfigurationError, match=r"sys\.executable"):
        monitor_of(judge="local", executor="process")


def test_nor_is_a_frozen_application(monitor_of, monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert monitor_of(judge="local").stats().executor == "thread"
