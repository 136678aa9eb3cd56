"""A forked child begins for itself: nothing held, nothing spent, no lock that nobody releases."""

import os
import threading
from contextlib import ExitStack, contextmanager

import pytest

from ragaliq import OnFeedback, Sampling


@contextmanager
def held_by_another_thread(*parts):
    """As at an unlucky moment for a fork."""
    taken, enough = threading.Event(), threading.Event()

    def hold():
        with ExitStack() as stack:
            for part in parts:
                stack.enter_context(part._lock)
            taken.set()
            enough.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait(30)
    try:
        yield
    finally:
        enough.set()
        thread.join(30)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_the_parent_holds_is_the_parents(monitor_of, case):
    monitor = monitor_of(
        sampling=Sampling(rate=0.0, rules=[OnFeedback()], max_per_minute=2), judge="local"
    )
    monitor.submit(case, run_id="a")
    handle = monitor.begin("b")
    with held_by_another_thread(monitor.queue, monitor.sampler, monitor.counters):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                handle.submit(case)  # the parent's: harmless
                mine = monitor.stats()
                monitor.submit(case, run_id="c")
                taken = monitor.feedback("a", value=False), monitor.feedback("c", value=False)
                flushed = monitor.flush(20)
                after = monitor.stats()
                good = (mine.started, taken, flushed) == (0, (False, True), True)
                code = 0 if good and after.outcomes == {"evaluated": 1} else 2
            finally:
                os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert monitor.stats().sampling == {"held": 1}
    assert monitor.feedback("a", value=False)
