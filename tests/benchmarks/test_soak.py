"""Under lasting overload and under faults the memory stays flat and the counts add up."""

import asyncio
import gc
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

import pytest
from rag_chain import QUESTION, rag_chain
from timed_requests import Timed

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import Monitor, SinkError
from ragaliq.testing import ScriptedJudge

MINUTES = float(os.environ.get("RAGALIQ_SOAK_MINUTES", "20"))
RATE = 200
WARM_UP = 0.25
"""Share of the time in which caches and the allocator's arenas fill."""
ALLOWED = 8 * 2**20
STATM = Path("/proc/self/statm")


def resident():
    """Bytes of memory the process holds."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth(memory):
    """Bytes between the first and the last third, once it is warm."""
    kept = memory[int(len(memory) * WARM_UP) :]
    third = len(kept) // 3
    return median(kept[-third:]) - median(kept[:third])


class SlowJudge(ScriptedJudge):
    """Half a second a run, eight at a time: a tenth of what comes. Remembers no calls."""

    async def _called(self, method, **arguments):
        await asyncio.sleep(0.25)


@pytest.mark.soak
@pytest.mark.skipif(not STATM.exists(), reason="reads the memory from /proc")
def test_memory_stays_flat_at_200_runs_a_second_with_a_slow_judge(report):
    monitor = Monitor(judge=SlowJudge(), metrics=["faithfulness"], on_result=lambda result: None)
    handler, chain = RagaliqCallbackHandler(monitor), rag_chain()
    started, memory, runs = time.monotonic(), [], 0
    ends, next_look = started + 60 * MINUTES, started
    while (now := time.monotonic()) < ends:
        if now >= next_look:
            gc.collect()
            memory.append(resident())
            next_look = now + max(1.0, MINUTES)
        chain.invoke(f"{QUESTION} {runs}", {"callbacks": [handler]})
        runs += 1
        time.sleep(max(0.0, started + runs / RATE - time.monotonic()))
    rate = runs / (time.monotonic() - started)

    stats = monitor.stats()
    monitor.close(5.0)
    grown = growth(memory)
    report(
        [
            f"{runs} runs in {MINUTES:g} minutes, {rate:.0f} a second: {stats.outcomes}",
            f"memory in MiB: {[size // 2**20 for size in memory]}; grown by {grown / 2**20:.1f}",
        ]
    )
    assert stats.started == runs == sum(stats.outcomes.values()) + stats.pending
    assert stats.outcomes["queue_full"] > runs / 2
    assert handler.open_runs == handler.errors == 0
    assert grown < ALLOWED


# --- under faults ---------------------------------------------------------------------------------

ATTEMPTS = Path(__file__).parents[1] / "hostile" / "attempts.jsonl"
SLOWEST = 0.05
"""Seconds that a request may spend in the handler."""
GREENLETS = """
from gevent import monkey
monkey.patch_all()
import sys, gevent
sys.path.insert(0, sys.argv[1])
from rag_chain import QUESTION, rag_chain
from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import Monitor

monitor = Monitor(judge="local")
config = {"callbacks": [RagaliqCallbackHandler(monitor)]}
asked = [gevent.spawn(rag_chain().invoke, QUESTION, config) for _ in range(8)]
gevent.joinall(asked, raise_error=True)
stats = monitor.stats()
assert stats.started == 8 == sum(stats.outcomes.values()) + stats.pending, stats
"""


class TimeLimitError(Exception):
    """What a task queue raises in the middle of a task that takes too long."""


class BrokenSink:
    """Refuses a tenth of what it is given, and hangs now and then."""

    name = "broken"

    def __init__(self, chance):
        self.chance = chance

    async def write(self, records):
        fault = self.chance.random()
        if fault < 0.02:
            await asyncio.sleep(3600.0)
        if fault < 0.1:
            raise self.chance.choice([OSError, ValueError, SinkError("full", permanent=True)])

    async def aclose(self):
        pass


class TimedHandler(Timed, RagaliqCallbackHandler):
    pass


def children(but):
    tasks = Path("/proc/self/task").iterdir()
    pids = [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
    return [pid for pid in pids if pid != but]


@pytest.fixture
def control():
    """The same chain in a process of its own, with a handler that is not ragaliq's."""
    program = [sys.executable, str(Path(__file__).with_name("timed_requests.py"))]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(program, **pipes, text=True) as process:
        yield process


def in_ms(slowest):
    return [round(1000 * each, 1) for each in slowest[-3:]]


@contextmanager
def time_limit(seconds):
    """Raises in the middle of whatever runs by then."""

    def raise_it(*_):
        raise TimeLimitError

    before = signal.signal(signal.SIGALRM, raise_it)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def freeze(seconds, pids):
    """Stop processes, as throttled containers are; the one returned ends once they run again."""
    listed = " ".join(map(str, pids))
    script = f"kill -STOP {listed}; sleep {seconds}; kill -CONT {listed}"
    return subprocess.Popen(["/bin/sh", "-c", script], start_new_session=True)


def disturb(chance, faults, control):
    """Do one thing that disturbs; a process that ends once this one is no longer stopped."""
    kind = chance.choices(["frozen", "judge killed", "greenlets"], [20, 20, 8])[0]
    faults[kind] += 1
    if kind == "frozen":
        judge = children(but=control.pid) if chance.random() < 0.5 else []
        return freeze(chance.uniform(0.1, 3.0), [os.getpid(), *judge])
    if kind == "greenlets":
        return subprocess.Popen([sys.executable, "-c", GREENLETS, str(Path(__file__).parent)])
    for pid in children(but=control.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return None


@pytest.mark.soak
@pytest.mark.skipif(not STATM.exists(), reason="reads the memory from /proc")
# A time limit that ends the start of one of LangChain's threads leaves Python's own books wrong.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_random_faults_break_no_books_and_hold_up_no_request(report, control):
    chance = random.Random(21)
    attempts = map(json.loads, ATTEMPTS.read_text().splitlines())
    hostile = [each["text"] * each.get("repeat", 1) for each in attempts]
    hostile += [unit * (40_000 // len(unit)) for unit in (" ", "```\nx", "[a](b) ", "1. ", "not ")]
    answers = [answer for text in hostile for answer in (*["Five days."] * 9, text)]
    monitor = Monitor(judge="local", deadline=10.0, sinks=[BrokenSink(chance)])
    handler, chain = TimedHandler(monitor), rag_chain(answers=answers)
    faults, memory, slowest, computed, runs = Counter(), [], [], [], 0
    started = time.monotonic()
    ends, next_look = started + 60 * MINUTES, started
    while (now := time.monotonic()) < ends:
        if now >= next_look:
            gc.collect()
            memory.append(resident())
            next_look = now + max(1.0, MINUTES)
        fault, frozen, limit = chance.random(), None, 0.0
        if fault < 0.005:
            frozen = disturb(chance, faults, control)
        elif fault < 0.05:
            limit = chance.uniform(1e-4, 0.004)
        handler.spent = handler.computed = 0.0
        try:
            with time_limit(limit):
                chain.invoke(f"{QUESTION} {runs}", {"callbacks": [handler]})
        except Exception:  # where Python starts a thread or waits for a lock, others come of it
            if not limit:
                raise
            faults["time limit"] += 1
        if frozen is not None:
            assert frozen.wait() == 0
        elif not limit:
            slowest = sorted([*slowest, handler.spent])[-1000:]
            computed = sorted([*computed, handler.computed])[-1000:]
        runs += 1
        time.sleep(0.02)

    controls = json.loads(control.communicate("end")[0])
    assert monitor.flush(60.0)
    stats = monitor.stats()
    monitor.close(5.0)
    sink, grown = stats.sinks["broken"], growth(memory)
    report(
        [
            f"{runs} runs in {MINUTES:g} minutes: {stats.outcomes}, {dict(stats.incomplete)}",
            f"faults: {dict(faults)}; sink: {sink}",
            f"slowest requests, ms in ragaliq by the clock: {in_ms(slowest)}",
            f"of which this process computed at most: {in_ms(computed)}",
            f"slowest without ragaliq, by the clock: {in_ms(controls)}",
            f"memory in MiB: {[size // 2**20 for size in memory]}; grown by {grown / 2**20:.1f}",
        ]
    )
    assert set(faults) == {"frozen", "judge killed", "greenlets", "time limit"}
    assert stats.started == sum(stats.outcomes.values()) + stats.pending
    # A time limit may end a request before its start is noticed; its steps then are runs of their
    # own.
    assert abs(stats.started - runs) <= faults["time limit"]
    assert stats.pending <= faults["time limit"]
    assert (
        sink.records == sink.written + sink.passed_over + sink.failed + sink.dropped + sink.pending
    )
    # What the machine keeps from every program is not ragaliq's; what keeps this thread waiting
    # while another one of this process computes is.
    assert computed[-1] < SLOWEST
    assert slowest[-1] < SLOWEST + controls[-1]
    assert grown < ALLOWED
