"""A process that judges gives what the thread gives, and shares nothing with the application."""

import os
import signal
from pathlib import Path

import pytest

from ragaliq import Citation, ContextChunk, RAGTestCase, ScoringPolicy, Turn, list_evaluators

CASES = [
    RAGTestCase(id="plain", query="Where?", context=["In Leeds."], response="It is in Leeds."),
    RAGTestCase(id="no context", query="Where?", response="It is in Leeds."),
    RAGTestCase(id="no claims", query="Where?", context=["In Leeds."], response="!"),
    RAGTestCase(id="refusal", query="Where?", context=["In Leeds."], response="I don't know."),
    RAGTestCase(
        id="ids",
        query="Wo?",
        context=[
            ContextChunk(text="Es liegt in Köln.", id="7", metadata={"handle": object()}),
            ContextChunk(text="It costs 5 pounds.", id=7),
        ],
        response="Es liegt in Köln. It costs 6 pounds. 東京 is far.",
        expected_facts=["It costs 5 pounds."],
        metadata={"user": object()},
    ),
    RAGTestCase(id="lone \ud800", query="\udfff", context=["One \ud800."], response="One \ud800."),
    RAGTestCase(
        id="conversation",
        query="I have two dogs. And for children?",
        context=["Children enter free of charge."],
        response="Children enter free of charge [1]. Refunds take five days. You have two dogs.",
        history=[
            Turn(role="user", text="How long do refunds take?"),
            Turn(role="assistant", text="Five days.", context=["Refunds take five days."]),
        ],
        citations=[Citation(start=0, end=30, source="prices.md", position=0)],
    ),
    RAGTestCase(id="long", query="What?", context=["Alpha is one. " * 20_000], response="Beta is."),
    RAGTestCase(
        id="many claims",  # sent back in parts
        query="How heavy?",
        context=["Box 7 weighs 9 kilograms."],
        response=" ".join(f"Box {n} weighs {n + 2} kilograms." for n in range(120)),
    ),
    RAGTestCase(
        id="cited",
        query="How long?",
        context=[ContextChunk(text="Refunds take five days.", metadata={"source": "a/refunds.md"})],
        response="Refunds take five days (source: refunds.md).",
        history=[
            Turn(role="user", text="Hello!"),
            Turn(
                role="assistant",
                text="Hello!",
                context=[ContextChunk(text="We sell shoes.", metadata={"of": object()})],
            ),
        ],
    ),
]


def results(monitor_of, executor, policy):
    reported = []
    monitor = monitor_of(
        judge="local",
        metrics=[n for n in list_evaluators() if n != "own"],
        policy=policy,
        executor=executor,
        on_result=reported.append,
    )
    for case in CASES:
        assert monitor.submit(case)
    assert monitor.flush(60.0)
    assert monitor.stats().executor == executor
    return {
        result.case.id: [
            repr(each.model_copy(update={"duration": None})) for each in result.results.values()
        ]
        for result in reported
    }


# RAGAS has NaN for a score.
@pytest.mark.parametrize("policy", [ScoringPolicy.LIVE, ScoringPolicy.RAGAS])
def test_results_are_those_of_the_thread(monitor_of, policy):
    found = results(monitor_of, "process", policy)
    assert found == results(monitor_of, "thread", policy)
    assert set(found) == {case.id for case in CASES}


def test_the_child_has_nothing_of_the_application(judging, child_of):
    monitor, _ = judging
    proc = Path("/proc") / str(child_of(monitor).pid)
    opened = {int(fd.name): str(fd.readlink()) for fd in (proc / "fd").iterdir()}
    assert opened[1] == opened[2] == os.devnull
    # Its standard input is the connection; the rest is its event loop's.
    assert all(fd < 8 for fd in opened)
    assert not any(name.startswith("/") for fd, name in opened.items() if fd > 2)
    assert os.getpgid(child_of(monitor).pid) != os.getpgid(0)  # whose signals a terminal sends
    environment = (proc / "environ").read_bytes().split(b"\0")
    assert not any(entry.startswith(b"PYTHONPATH=") for entry in environment)
    assert b"pytest" not in (proc / "maps").read_bytes()


@pytest.mark.parametrize("niceness", [0, 3, 19])
def test_it_steps_back_as_far_as_it_is_told(monitor_of, claims, child_of, niceness):
    monitor = monitor_of(judge="local", executor="process", niceness=niceness)
    monitor.submit(claims)
    assert monitor.flush(60.0)
    own, pid = os.getpriority(os.PRIO_PROCESS, 0), child_of(monitor).pid
    assert os.getpriority(os.PRIO_PROCESS, pid) == min(19, own + niceness)
    # Linux may weigh sessions before processes: its niceness counts within the application's.
    assert os.getsid(pid) == os.getsid(0)
    if hasattr(os, "SCHED_IDLE"):
        expected = os.SCHED_IDLE if niceness == 19 else os.sched_getscheduler(0)
        assert os.sched_getscheduler(pid) == expected


def test_an_interrupt_is_for_the_application(judging, claims, child_of):
    monitor, reported = judging
    before = monitor.stats().restarts  # monitors share the process, and earlier ones lost it
    os.kill(child_of(monitor).pid, signal.SIGINT)
    monitor.submit(claims)
    assert monitor.flush(60.0)
    assert len(reported) == 2
    assert monitor.stats().restarts == before
