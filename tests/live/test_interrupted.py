"""An exception from a signal may come between any two lines of a request: the books add up."""

import gc
import linecache
import sys
from pathlib import Path

import pytest

import ragaliq
from ragaliq import OnCondition, OnTag, RAGTestCase, Sampling
from ragaliq.testing import ScriptedJudge

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
    monitor = monitor_of(judge=ScriptedJudge(), evaluators=["relevance"], **settings)
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

    monitor = monitor_of(judge=ScriptedJudge(), evaluators=["relevance"], mode="inline")

    def limit(_):
        raise TimeLimitError

    monitor._engine.inline.wait = limit
    run = monitor.begin("run-1")
    with pytest.raises(TimeLimitError):
        run.submit(CASE)
    assert monitor.flush(10.0)
    assert monitor.stats().outcomes == {"evaluated": 1}
