"""Nothing that goes wrong raises into a request, is lost from the counts or stops the worker."""

import asyncio
import gc
import linecache
import sys
import threading
import time
import weakref
from contextvars import ContextVar
from pathlib import Path

import pytest
from opentelemetry import trace

import ragaliq
from ragaliq import (
    JudgeAPIError,
    JudgeRefusalError,
    Monitor,
    OnCondition,
    OnTag,
    RAGTestCase,
    Sampling,
)
from ragaliq.live.runtime import RUNTIME
from ragaliq.testing import ScriptedJudge


class OutOfBoundsError(BaseException):
    """Not even an Exception."""


def refuse_to_start(thread):
    raise RuntimeError("can't start new thread")


def test_where_no_thread_can_be_started_the_run_is_counted_once_and_the_next_one_tries_again(
    monitor_of, case, monkeypatch
):
    monitor = monitor_of()
    RUNTIME.thread.stop(5.0)  # other tests have started it
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse_to_start)
        assert not monitor.submit(case)
    assert monitor.stats().incomplete == {"internal_error": 1}
    assert monitor.submit(case)
    assert monitor.flush(5.0)
    assert monitor.stats().outcomes == {"incomplete_run": 1, "evaluated": 1}
    assert monitor.stats().pending == 0


class Unprintable:
    """An id that not even `str` can be made of."""

    def __str__(self):
        raise ValueError("no text")

    __repr__ = __str__

    def __hash__(self):
        raise ValueError("no hash")


def test_an_id_of_any_kind_raises_nothing_and_is_counted(monitor_of, case):
    class WithoutId:
        @property
        def id(self):
            raise LookupError("Zanzibar")

    monitor = monitor_of()
    assert not monitor.submit(WithoutId(), pipeline="p")
    assert monitor.stats().incomplete == {"internal_error": 1}
    monitor = monitor_of()
    assert not monitor.submit(case, run_id=Unprintable())
    assert not monitor.submit(case, pipeline=Unprintable())
    assert monitor.begin(Unprintable()) is None
    assert not monitor.feedback(Unprintable(), 1.0)
    stats = monitor.stats()
    assert (stats.started, stats.pending) == (3, 0)
    assert stats.incomplete == {"internal_error": 3}


class Faulty(Unprintable):
    """An object that raises for whatever is asked of it."""

    def __bool__(self):
        raise ValueError("no truth")

    def __eq__(self, other):
        raise ValueError("no equal")

    __hash__ = Unprintable.__hash__


class Classless(Faulty):
    @property
    def __class__(self):
        raise ValueError("no class")


def test_an_object_in_an_arguments_place_raises_nothing_and_is_counted(monitor_of, case):
    monitor = monitor_of()
    assert not monitor.submit(Classless())
    assert monitor.submit(case, target=Faulty())
    assert not monitor.begin("run").submit(Classless())
    for reason in (Faulty(), ["a list"], "x" * 1_000_000):
        monitor.begin("run").discard(reason)
    assert monitor.flush(5.0)
    stats = monitor.stats()
    assert (stats.started, stats.pending) == (6, 0)
    assert stats.incomplete == {"internal_error": 5, "x" * 100: 1}


class Unreadable(trace.NonRecordingSpan):
    """A span of another library that fails when it is looked at a second time."""

    def __init__(self):
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self.looks = 0

    def get_span_context(self):
        self.looks += 1
        if self.looks > 1:
            raise LookupError
        return super().get_span_context()


def test_a_span_that_cannot_be_read_is_no_target(monitor_of, case):
    monitor = monitor_of()
    with trace.use_span(Unreadable()):
        assert monitor.submit(case)
    assert monitor.flush(5.0)
    assert monitor.stats().outcomes == {"evaluated": 1}


@pytest.mark.parametrize(
    ("method", "error", "outcomes", "evaluations"),
    [
        ("evaluate_relevance", JudgeRefusalError, {"evaluated": 2}, {"judge_refused": 1}),
        ("evaluate_relevance", ValueError, {"evaluated": 2}, {"judge_error": 1}),
        ("evaluate_relevance", OutOfBoundsError, {"incomplete_run": 1, "evaluated": 1}, {}),
        ("verify_claims", SystemExit, {"incomplete_run": 1, "evaluated": 1}, {}),
    ],
)
def test_whatever_a_judge_raises_is_counted_quoted_nowhere_and_the_next_run_is_judged(
    monitor_of, case, caplog, *, method, error, outcomes, evaluations
):
    caplog.set_level("DEBUG")
    monitor = monitor_of(judge=ScriptedJudge(failures={method: [error("Zanzibar"), None]}))
    for _ in range(2):
        monitor.submit(case)
        assert monitor.flush(5.0)
    assert monitor.stats().outcomes == outcomes
    assert monitor.stats().evaluations["relevance"] == {"scored": 1} | evaluations
    gc.collect()
    if error is not ValueError:  # of this kind a process logs only the first
        assert (error.__name__ in caplog.text) is (error is not JudgeRefusalError)
    assert "Zanzibar" not in caplog.text


def test_a_judge_that_cannot_be_reached_is_named_in_the_log_once(monitor_of, case, caplog):
    failures = {"evaluate_relevance": [JudgeAPIError("Zanzibar"), JudgeAPIError("Zanzibar"), None]}
    monitor = monitor_of(judge=ScriptedJudge(failures=failures), metrics=["relevance"])
    for _ in range(3):
        monitor.submit(case)
        assert monitor.flush(5.0)
    assert monitor.stats().evaluations == {"relevance": {"judge_error": 2, "scored": 1}}
    assert caplog.text.count("the judge gave no answer: JudgeAPIError") == 1
    assert "Zanzibar" not in caplog.text


def test_a_judge_that_fails_after_its_deadline_is_quoted_nowhere(monitor_of, case, caplog):
    class Late(ScriptedJudge):
        async def verify_claims(self, claims, context):
            try:
                await asyncio.Event().wait()
            finally:
                raise ValueError("Zanzibar")

    monitor = monitor_of(judge=Late(), metrics=["faithfulness", "hallucination"], deadline=0.05)
    monitor.submit(case)
    assert monitor.flush(5.0)
    assert monitor.close(5.0)
    gc.collect()
    assert "Zanzibar" not in caplog.text


@pytest.mark.parametrize("method", ["evaluate_relevance", "extract_statements"])
def test_a_judge_that_cancels_itself_is_a_judge_error_and_no_shutdown(monitor_of, case, method):
    judge = ScriptedJudge(failures={method: asyncio.CancelledError()})
    monitor = monitor_of(judge=judge, metrics=["faithfulness", "relevance"])
    monitor.submit(case)
    assert monitor.flush(5.0)
    stats = monitor.stats()
    assert stats.outcomes == {"evaluated": 1}
    statuses = [next(iter(counts)) for counts in stats.evaluations.values()]
    assert sorted(statuses) == ["judge_error", "scored"]


def test_monitors_nobody_holds_any_more_leave_one_thread_for_the_next(case):
    def run():
        monitor = Monitor(judge=ScriptedJudge(), on_result=lambda _: None)
        monitor.submit(case)
        assert monitor.flush(5.0)
        gone = weakref.ref(monitor)
        del monitor
        while gone() is not None:  # the task that did the work may still be about to end
            gc.collect()

    run()
    before = set(threading.enumerate())
    for _ in range(3):
        run()
    for thread in set(threading.enumerate()) - before:
        while thread.ident is None:  # it is being started
            time.sleep(0.01)
        thread.join(5.0)
        assert not thread.is_alive()
    assert [thread.name for thread in before].count("ragaliq-worker") == 1


def test_a_judge_that_counts_as_false_is_a_judge(monitor_of):
    class Empty(ScriptedJudge):
        def __len__(self):
            return 0

    judge = Empty()
    assert monitor_of(judge=judge).judge is judge


def test_a_judge_sees_nothing_of_the_context_of_a_request(monitor_of, case):
    seen, tenant = [], ContextVar("tenant", default=None)

    class Looking(ScriptedJudge):
        async def evaluate_relevance(self, query, response):
            seen.append(tenant.get())
            return await super().evaluate_relevance(query, response)

    monitor = monitor_of(judge=Looking(), metrics=["relevance"])
    token = tenant.set("of this request")
    try:
        monitor.submit(case)
        monitor.evaluate(case)
    finally:
        tenant.reset(token)
    assert monitor.flush(10.0)
    assert seen == [None, None]


_OURS = str(Path(ragaliq.__file__).parent)

CASE = RAGTestCase(query="q", response="It is so.")


class Interrupted(BaseException):
    """As Ctrl-C, or a time limit of Celery's."""


def interrupted_at(line, work):
    """Do the work, with an exception before its so-manyth line of ours; whether it got there."""
    seen = 0

    def trace(frame, event, _):
        nonlocal seen
        if not frame.f_code.co_filename.startswith(_OURS):
            return None
        # The end of a `with` block is a line as well, but no signal handler runs there.
        source = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and not source.lstrip().startswith("with "):
            seen += 1
            if seen == line:
                raise Interrupted
        return trace

    sys.settrace(trace)
    try:
        work()
    except Interrupted:
        return True
    finally:
        sys.settrace(None)
    return seen >= line


def begun_and_ended(monitor):
    run = monitor.begin("run-1", pipeline="p")
    run.submit(CASE)


def begun_and_discarded(monitor):
    run = monitor.begin("run-1", pipeline="p")
    run.discard("truncated")


WAYS = {
    "submit": (lambda monitor: monitor.submit(CASE), {}),
    "begin and submit": (begun_and_ended, {}),
    "begin and discard": (begun_and_discarded, {}),
    "with rules": (
        begun_and_ended,
        {"sampling": Sampling(rate=0.5, rules=[OnTag("a"), OnCondition(lambda run: True)])},
    ),
    "a full queue": (begun_and_ended, {"max_queue": 1}),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("way", WAYS)
def test_an_exception_at_any_line_leaves_books_that_add_up(monitor_of, way):
    work, settings = WAYS[way]
    monitor = monitor_of(judge=ScriptedJudge(), metrics=["relevance"], **settings)
    monitor.submit(CASE)  # what is loaded and started on first use
    assert monitor.flush(10.0)
    line = faults = 0
    while interrupted_at(line := line + 1, lambda: work(monitor)):
        faults += 1
        gc.collect()
        assert monitor.flush(10.0), f"line {line}"
        stats = monitor.stats()
        assert stats.started == sum(stats.outcomes.values()) + stats.pending, f"line {line}"
        assert stats.pending == 0, f"line {line}"
        assert stats.queued == stats.queued_bytes == 0, f"line {line}"
    assert faults > 20
    assert monitor.flush(10.0)
    taken = [monitor.submit(CASE, run_id=str(number)) for number in range(8)]
    assert any(taken), monitor.stats()
    assert monitor.flush(10.0)


def test_what_interrupts_the_waiting_of_inline_mode_reaches_the_application(monitor_of):
    class TimeLimitError(Exception):
        """The application's own."""

    monitor = monitor_of(judge=ScriptedJudge(), metrics=["relevance"], mode="inline")

    def limit(_):
        raise TimeLimitError

    monitor.inline.wait = limit
    run = monitor.begin("run-1")
    with pytest.raises(TimeLimitError):
        run.submit(CASE)
    assert monitor.flush(10.0)
    assert monitor.stats().outcomes == {"evaluated": 1}
