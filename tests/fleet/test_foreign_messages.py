"""Messages that are no job this worker can do: set aside in plain words, and nothing stops."""

from __future__ import annotations

import pickle

import pytest
from worker_fleet import eventually

from ragaliq import RAGTestCase, RunInfo
from ragaliq.live.job import Job
from ragaliq.worker_tier.message import message_of

SECRET = "the patient's name is Quux"


def message(**changed):
    case = RAGTestCase(
        id="case-1", query=f"case-1 {SECRET}", context=["Alpha is one."], response="Alpha is one."
    )
    job = Job(case=case, run=RunInfo(run_id="run-1", ended_at=1.0))
    return message_of(job, ["faithfulness"]) | changed


class Crash:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def test_foreign_messages_are_set_aside_and_the_worker_goes_on(fleet):
    ran = {"task": "ragaliq.evaluate", "id": "x", "lang": "py"}
    fleet.publish(message(version=[2, 0]))
    fleet.publish(message(version=[0, 9]))
    fleet.publish(message(version="newest"))
    fleet.publish(message(metrics=["politeness"]))
    fleet.publish(message(surprise=SECRET))
    fleet.publish(message() | {"case": {"query": SECRET}})
    fleet.publish(None, body=[[message(), SECRET], {"key": SECRET}, {}])
    fleet.publish(None, body={"no": "call"})
    fleet.publish(None, headers=ran | {"task": "os.system"})
    fleet.publish(None, headers={})
    fleet.publish(None, body=b"{", serializer=None, content_type="application/json")
    pickled = pickle.dumps([[Crash()], {}, {}])
    fleet.publish(
        None, body=pickled, serializer=None, content_type="application/x-python-serialize"
    )
    fleet.publish(message())
    fleet.start("--log-level", "info")

    assert eventually(lambda: fleet.waiting("ragaliq.set_aside") == 12)
    assert eventually(lambda: fleet.evaluated() == ["case-1"])
    assert eventually(lambda: not fleet.waiting() and not fleet.unacknowledged())
    told = sorted((job.reason, job.detail) for job in fleet.set_aside())
    assert told == [
        ("malformed", "1 wrong fields"),
        ("malformed", "1 wrong fields"),
        ("malformed", "another task"),
        ("malformed", "no JSON"),
        ("malformed", "no JSON"),
        ("malformed", "no call of a task"),
        ("malformed", "no job with a version"),
        ("malformed", "no job with a version"),
        ("malformed", "no task"),
        ("unknown_metric", "1 metrics unknown to the worker"),
        ("version", "version 0.9; this worker reads 1.x only"),
        ("version", "version 2.0; this worker reads 1.x only"),
    ]
    assert fleet.waiting("ragaliq.set_aside") == 12  # looking at them leaves them there
    assert "version 2.0" in fleet.logs()
    assert SECRET not in fleet.logs()
    assert fleet.workers[0].poll() is None


def test_a_newer_minor_version_is_done_without_what_this_version_does_not_know(fleet):
    newer = message(version=[1, 7], tenant="north")
    newer["run"]["region"] = "eu"
    newer["case"]["language"] = "de"
    fleet.publish(newer)
    fleet.start()
    assert eventually(lambda: fleet.evaluated() == ["case-1"])
    assert fleet.waiting("ragaliq.set_aside") == 0


def test_what_was_set_aside_can_be_done_after_all_or_dropped(fleet, ragaliq_cli):
    fleet.publish(message(metrics=["politeness"]))
    fleet.publish(None, body={"no": "call"})
    fleet.start()
    assert eventually(lambda: fleet.waiting("ragaliq.set_aside") == 2)
    job_id = message()["job_id"]

    listed = ragaliq_cli("worker", "set-aside", "list")
    assert job_id in listed.stdout
    assert "unknown_metric" in listed.stdout
    assert SECRET not in listed.stdout + listed.stderr

    fleet.end()
    retried = ragaliq_cli("worker", "set-aside", "retry")
    assert "1 jobs were put back; 1 messages hold no job" in retried.stderr
    assert (fleet.waiting(), fleet.waiting("ragaliq.set_aside")) == (1, 1)
    assert ragaliq_cli("worker", "set-aside", "drop").code == 2
    assert "1 jobs were dropped" in ragaliq_cli("worker", "set-aside", "drop", "--all").stderr
    assert fleet.waiting("ragaliq.set_aside") == 0
