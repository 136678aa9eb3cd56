"""What becomes of a delivery, with a mail that only takes notes."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ragaliq import (
    Budget,
    CircuitBreaker,
    JudgeAPIError,
    JudgeUsage,
    RAGTestCase,
    RunInfo,
    SinkError,
    WorkerSettings,
)
from ragaliq.live.job import Job
from ragaliq.testing import ScriptedJudge
from ragaliq.worker_tier.delivery import Deliveries
from ragaliq.worker_tier.message import message_of


class Notes:
    """Notes what is put back and aside."""

    def __init__(self):
        self.back, self.aside = [], []

    def put_back(self, message):
        self.back.append(message)

    def set_aside(self, message, *, reason, detail):
        self.aside.append((reason, message))


class Kept:
    """A sink in memory, which can be told to fail."""

    name = "kept"

    def __init__(self, *, fails=False):
        self.records, self._fails = {}, fails

    async def write(self, records):
        if self._fails:
            raise SinkError("no", permanent=True)
        self.records |= {record.evaluation_id: record for record in records}

    async def holds(self, evaluation_id):
        return evaluation_id in self.records

    async def aclose(self):
        pass


def message(name="run-1", **changed):
    case = RAGTestCase(id=name, query="q", context=["Alpha is one."], response="Alpha is one.")
    job = Job(case=case, run=RunInfo(run_id=name, ended_at=1.0))
    return message_of(job, ["faithfulness"]) | changed


@pytest.fixture
def working():
    made = []

    def build(judge=None, **settings):
        notes, kept = Notes(), settings.pop("sink", Kept())
        settings.setdefault("backoff", 0.001)
        how = {"end_process": settings.pop("end_process")} if "end_process" in settings else {}
        chosen = WorkerSettings(
            judge=judge or ScriptedJudge(), sinks=[kept], evaluators=["faithfulness"], **settings
        )
        made.append(Deliveries(chosen, notes, **how))
        return made[-1], notes, kept

    yield build
    for deliveries in made:
        deliveries.close(1.0)


def test_when_a_delivery_has_been_taken_its_record_is_stored(working):
    deliveries, notes, kept = working()
    deliveries.take(message(), redelivered=False)
    assert [record.case_id for record in kept.records.values()] == ["run-1"]
    assert (notes.back, notes.aside) == ([], [])


def test_a_judge_that_recovers_is_asked_again_before_anything_is_stored(working):
    judge = ScriptedJudge(failures={"extract_statements": [JudgeAPIError("down"), None]})
    deliveries, _, kept = working(judge)
    deliveries.take(message(), redelivered=False)
    ((metric,),) = (record.metrics for record in kept.records.values())
    assert (metric.status.value, metric.score) == ("scored", 1.0)


def test_a_job_that_is_stored_is_not_judged_again(working):
    judge = ScriptedJudge()
    deliveries, notes, _ = working(judge)
    deliveries.take(message(), redelivered=False)
    asked = len(judge.calls)
    deliveries.take(message(), redelivered=False)
    deliveries.take(message(), redelivered=True)
    assert len(judge.calls) == asked
    assert (notes.back, notes.aside) == ([], [])


def test_a_redelivered_job_is_counted_before_it_is_worked_on_and_at_last_set_aside(working):
    judge = ScriptedJudge()
    deliveries, notes, _ = working(judge, max_deliveries=2)
    deliveries.take(message(), redelivered=True)
    assert [each["deliveries"] for each in notes.back] == [2]
    deliveries.take(notes.back[0], redelivered=True)
    assert [reason for reason, _ in notes.aside] == ["crashed"]
    assert judge.calls == []


def test_a_record_that_no_sink_took_is_not_lost(working):
    deliveries, notes, _ = working(sink=Kept(fails=True))
    deliveries.take(message(), redelivered=False)
    assert [reason for reason, _ in notes.aside] == ["unrecorded"]


def test_a_job_that_takes_too_long_is_set_aside(working):
    deliveries, notes, _ = working(SlowJudge(), deadline=0.05, time_limit=0.1, attempts=50)
    deliveries.take(message(), redelivered=False)
    assert [reason for reason, _ in notes.aside] == ["too_slow"]


class SlowJudge(ScriptedJudge):
    started = threading.Event()

    async def extract_statements(self, query, response):
        self.started.set()
        await asyncio.sleep(30.0)


def test_what_is_given_back_keeps_its_count_and_nothing_new_is_begun(working):
    judge = SlowJudge()
    deliveries, notes, kept = working(judge)
    taking = threading.Thread(
        target=lambda: deliveries.take(message(deliveries=3), redelivered=False)
    )
    taking.start()
    assert judge.started.wait(5.0)
    deliveries.give_back()
    taking.join(5.0)
    deliveries.take(message("run-2"), redelivered=False)
    assert [(each["case"]["id"], each["deliveries"]) for each in notes.back] == [
        ("run-1", 3),
        ("run-2", 1),
    ]
    assert kept.records == {}


class BlockingJudge(ScriptedJudge):
    """Keeps the loop to itself, as one does that computes, or waits without `await`."""

    done = threading.Event()

    async def extract_statements(self, query, response):
        self.done.wait(30.0)
        return await super().extract_statements(query, response)


def test_where_a_job_blocks_all_others_the_process_ends_and_none_is_set_aside(working, monkeypatch):
    monkeypatch.setattr("ragaliq.worker_tier.delivery._LOOP_ANSWERS_WITHIN", 0.05)
    judge = BlockingJudge()

    def end_process(code):
        raise SystemExit(code)

    deliveries, notes, _ = working(judge, deadline=0.05, time_limit=0.1, end_process=end_process)
    try:
        with pytest.raises(SystemExit, match="70"):
            deliveries.take(message(), redelivered=False)
    finally:
        judge.done.set()
    assert (notes.back, notes.aside) == ([], [])


def judge_that_is_down():
    return ScriptedJudge(failures={"extract_statements": JudgeAPIError("down")})


def test_while_the_breaker_is_open_jobs_wait_and_are_done_when_it_closes(working):
    judge = ScriptedJudge(failures={"extract_statements": [JudgeAPIError("down")] * 2 + [None]})
    deliveries, notes, kept = working(
        judge, attempts=1, backoff=0.02, breaker=CircuitBreaker(failures=2, pause=0.1)
    )
    for name in ("run-1", "run-2", "run-3"):  # the second one opens it
        deliveries.take(message(name), redelivered=False)
    ended = {record.case_id: record.metrics[0].status.value for record in kept.records.values()}
    assert ended == {"run-1": "judge_error", "run-2": "judge_error", "run-3": "scored"}
    assert (notes.back, notes.aside) == ([], [])


def test_where_the_breaker_stays_open_jobs_go_back_and_at_last_aside(working):
    judge = judge_that_is_down()
    deliveries, notes, _ = working(
        judge,
        breaker=CircuitBreaker(failures=1, pause=60.0),
        max_deliveries=2,
        deadline=0.05,
        time_limit=0.2,
    )
    deliveries.take(message(), redelivered=False)
    assert [each["deliveries"] for each in notes.back] == [2]
    deliveries.take(notes.back[0], redelivered=False)
    assert [reason for reason, _ in notes.aside] == ["judge_unavailable"]
    assert len(judge.calls) == 1


def test_a_job_above_the_budget_is_left_unjudged_in_plain_words(working, caplog):
    judge = ScriptedJudge(usage=JudgeUsage(requests=1, cost_usd=1.0))
    deliveries, notes, kept = working(judge, budget=Budget(usd_per_day=1.0))
    deliveries.take(message("run-1"), redelivered=False)
    deliveries.take(message("run-2"), redelivered=False)
    deliveries.take(message("run-3"), redelivered=False)
    assert [record.case_id for record in kept.records.values()] == ["run-1"]
    assert (notes.back, notes.aside) == ([], [])
    assert caplog.text.count("for want of budget") == 1
