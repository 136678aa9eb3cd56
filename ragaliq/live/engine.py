"""What is behind the request path in one process: queue, worker thread, judging, `on_result`.

The worker is one daemon thread with its own event loop. It never touches the application's loop, so
it works the same in scripts, notebooks and synchronous or asynchronous servers. Monitors that were
made with equal settings share one engine.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import Context
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from ragaliq.capture import Conversations, RunLog
from ragaliq.capture.run import built
from ragaliq.core.checks import require_positive
from ragaliq.core.complaints import Complaints
from ragaliq.core.concurrency import is_being_cancelled
from ragaliq.core.results import Evaluation, EvaluationResult
from ragaliq.core.suppression import suppress
from ragaliq.core.sync import LoopThread, WorkThread, wait_for
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import BudgetExceeded, CircuitOpenError, ConfigurationError, JobRefusedError
from ragaliq.evaluators.case import RAISED
from ragaliq.live.enqueueing import Enqueueing
from ragaliq.live.lifecycle import HoldsRuns, Sweepable, watch_process
from ragaliq.live.run import InlineMode, OpenRun
from ragaliq.live.sampler import Sampler
from ragaliq.live.sampling import Choice
from ragaliq.live.stats import MonitorStats, Tally
from ragaliq.scoring.scorer import Scorer
from ragaliq.telemetry.names import Outcome

if TYPE_CHECKING:
    from ragaliq.live.monitor import Monitor


logger = logging.getLogger(__name__)

# What a rule chose goes before what the rate chose, and first what somebody waits for.
_PRIORITIES = {"rate": 0, "requested": 2}

ResultCallback = Callable[[Evaluation], object | Awaitable[object]]

# Seconds a process may take to end without saying why: the embedded judge takes one to start.
_UNNOTICED = 2.0

_MANY = 3
_COMPLAINTS = Complaints(logger)
_ENGINES: weakref.WeakSet[Engine] = weakref.WeakSet()


class Engine:
    """Takes finished runs and has them judged; starts again in a forked child.

    Args:
        scorer: Judges runs, or enqueues them for workers elsewhere.
        sampler: Decides about finished runs.
        made_with: The monitor's arguments; monitors with equal ones share the engine.
        concurrency: Runs evaluated at the same time.
        max_queue: Runs that may wait.
        max_queue_bytes: Bytes their texts may take.
        on_result: Called with each result.
        on_result_timeout: Seconds such a call may take.
        inline_timeout: Seconds each run's caller waits for its result; None for a background
            monitor.
        exit_timeout: Seconds to wait for queued runs when the process ends.

    Attributes:
        sampler: Likewise.
        metrics, emitter, sinks: The scorer's.
        judge: Who decides; None where workers elsewhere do.
        inline: Where results are waited for; None for a background monitor.
        monitors: Who uses the engine. The threads end when the last of them is closed or gone.

    Raises:
        ConfigurationError: A limit is not positive, or something is of the wrong kind.
    """

    def __init__(
        self,
        scorer: Scorer | Enqueueing,
        sampler: Sampler,
        made_with: Mapping[str, object],
        *,
        concurrency: int,
        max_queue: int,
        max_queue_bytes: int,
        on_result: ResultCallback | None,
        on_result_timeout: float,
        inline_timeout: float | None,
        exit_timeout: float,
    ) -> None:
        require_positive(
            concurrency=concurrency,
            max_queue=max_queue,
            max_queue_bytes=max_queue_bytes,
            on_result_timeout=on_result_timeout,
        )
        if on_result is not None and not callable(on_result):
            raise ConfigurationError(
                f"Monitor: on_result must be a function, got {type(on_result).__name__}"
            )
        self._scorer, self.sampler = scorer, sampler
        self.metrics, self.judge = scorer.metrics, scorer.judge
        self.emitter, self.sinks = scorer.emitter, scorer.sinks
        self._made_with = made_with
        self._conversations = Conversations()
        # Workers elsewhere may look at them.
        self._keeps_turns = not isinstance(scorer, Scorer) or any(
            evaluator.policy.history_turns for evaluator in scorer.metrics
        )
        self._concurrency = concurrency if isinstance(scorer, Scorer) else 1
        self._queue_bounds = max_queue, max_queue_bytes
        self._on_result, self._on_result_timeout = on_result, on_result_timeout
        self._inline_timeout = inline_timeout
        self.exit_timeout = exit_timeout
        self.monitors: weakref.WeakSet[Monitor] = weakref.WeakSet()
        self._start()
        watch_process(self)
        at_work = (each for each in _ENGINES if each._thread.running and each.monitors)
        if sum(1 for _ in at_work) >= _MANY - 1:
            _COMPLAINTS.once(
                "many monitors",
                f"{_MANY} monitors with different arguments are alive, each with threads and "
                "perhaps a process of its own: make each monitor, handler or guard once, or give "
                "them the same judge object and functions, so that they share",
            )

    def _start(self) -> None:
        """What each process has for itself."""
        self._thread = LoopThread("ragaliq-worker")
        # Re-entrant: the garbage collector may end a run on this thread. Where nobody is notified
        # the lock alone is taken, which costs a request less.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        max_runs, max_bytes = self._queue_bounds
        self._queue = RunQueue(max_runs=max_runs, max_bytes=max_bytes)
        self._working: dict[asyncio.Task[None], OpenRun] = {}
        self._is_woken = self._is_stopped = False
        self._complaints = Complaints(logger)
        self._reporter: _Reporter | None = None
        if self._on_result is not None:
            self._reporter = _Reporter(self._on_result, self._on_result_timeout, self._complaints)
        self.inline = None if self._inline_timeout is None else InlineMode(self._inline_timeout)
        self._sweepables: weakref.WeakSet[Sweepable] = weakref.WeakSet()
        self._holding: weakref.WeakSet[HoldsRuns] = weakref.WeakSet()
        self._next_sweep: float | None = None

    # --- the request path ---------------------------------------------------------------------

    def submit(self, run: OpenRun, choice: Choice) -> bool:
        """Queue a submitted run without blocking; whether it was taken. The reason is counted.

        Raises:
            RuntimeError: The thread cannot be started; nothing is counted.
        """
        run.choice, run.priority = choice, _PRIORITIES.get(choice.reason, 1)
        if run.receipt is None and self.inline is not None:
            self.inline.expect(run)
        if choice.reason == "requested" and self.is_own_thread:
            # Every run at the judge may wait for such a callback: queued, it would never start.
            asyncio.run_coroutine_threadsafe(self._judge(run), self._thread.loop())
            return True
        displaced: list[OpenRun] | None = None
        with self._lock:
            is_closed = run.tally.is_closed or self._is_stopped
            if not is_closed:
                # First: where there is no thread nothing may be queued.
                loop = self._thread.loop()
                displaced = self._queue.put(run)
                # Where enough runs are being judged, the end of one begins the next.
                has_room = not self._is_woken and len(self._working) < self._concurrency
                if displaced is not None and has_room:
                    if self._reporter is not None:
                        self._reporter.prepare()
                    # Not in the request's context: with a framework's callbacks in it, what the
                    # judge asks and is told would be handed to the application, or its user.
                    loop.call_soon_threadsafe(self._begin_judging, context=Context())
                    self._is_woken = True
        if displaced is None:
            run.end("shutdown" if is_closed else "queue_full")
        elif displaced:
            self._drop(displaced, "queue_full")
        return displaced is not None

    def sweep_later(self, delay: float, sweepable: Sweepable) -> bool:
        """Sweep something once, in `delay` seconds or sooner; False when it will not be done.

        There is one timer, and it keeps nothing alive: applications may make a handler for each
        request, which would pay for timers of their own with time and memory.
        """
        at = time.monotonic() + delay
        with self._lock:
            if self._is_stopped:
                return False
            if self._next_sweep is None or at < self._next_sweep:
                try:
                    loop = self._thread.loop()
                except RuntimeError:
                    return False
                if self._reporter is not None:
                    self._reporter.prepare()  # a run may end only after the main thread has
                # Weak, and in no context, or the timer would keep a forgotten monitor's thread, and
                # what the request holds, for so long.
                sweep = weakref.WeakMethod(self._sweep)
                loop.call_soon_threadsafe(
                    loop.call_later, delay, lambda: (now := sweep()) and now(), context=Context()
                )
                self._next_sweep = at
            self._sweepables.add(sweepable)
            if isinstance(sweepable, HoldsRuns):
                self._holding.add(sweepable)
        return True

    @property
    def is_own_thread(self) -> bool:
        """Whether the caller runs on one of the engine's threads: waiting would be for itself."""
        if self._thread.is_current:
            return True
        return self._reporter is not None and self._reporter.is_own_thread

    @property
    def size(self) -> int:
        """Runs waiting in the queue."""
        return len(self._queue)

    def stats(self, tally: Tally) -> MonitorStats:
        """A monitor's counts now, and where queue, breaker, budget and sinks stand."""
        stats = replace(
            tally.snapshot(),
            executor=self._scorer.executor,
            restarts=self._scorer.restarts,
            queued=len(self._queue),
            queued_bytes=self._queue.size,
            sampling=self.sampler.counts(),
            sinks=self.sinks.stats(),
        )
        limits = self._scorer.protection
        if limits is None:
            return stats
        return replace(
            stats, breaker=limits.breaker, budget=limits.budget(), limits_storage=limits.storage
        )

    # --- the ends -----------------------------------------------------------------------------

    def flush(self, timeout: float, tally: Tally | None = None) -> bool:
        """Wait until the runs taken so far are evaluated and stored; later ones do not count.

        Args:
            timeout: Seconds.
            tally: Whose runs; by default every monitor's.

        Returns:
            False where that was not enough, on the engine's own threads, and at once for a monitor
            that was closed with runs left behind.
        """
        deadline = time.monotonic() + timeout
        finished = self._hand_over_ended()  # somebody waits for these runs' scores
        finished = self._wait(timeout, tally) and finished
        return self.sinks.flush(max(0.0, deadline - time.monotonic())) and finished

    def close(self, timeout: float, tally: Tally | None = None) -> bool:
        """Refuse further runs, wait up to `timeout` seconds, then drop and count what is left.

        On the engine's own threads it cannot wait: what is in the queue is still done, and the next
        close from elsewhere, or the exit's, waits for it.

        Args:
            timeout: Seconds.
            tally: Whose runs; by default every monitor's. With the last monitor the threads end.
        """
        deadline = time.monotonic() + timeout
        self._hand_over_ended()
        closing = {tally} if tally is not None else self._tallies()
        with self._lock:
            for books in closing:
                books.is_closed = True
            is_given_up = tally is not None and tally.is_given_up
            if self._is_unused and not is_given_up:
                # Nobody will wait for the runs that monitors which are gone have left.
                tally, closing = None, self._tallies()
        if self.is_own_thread:
            return False
        finished = self._wait(timeout, tally)
        with self._lock:
            left = self._queue.clear(tally)
            is_first = not all(books.is_given_up for books in closing)
            for books in closing:
                books.is_given_up = True
        self._drop(left, "shutdown")
        if not finished and is_first:
            self._on_loop(self._cancel, tally)
            # A moment for cancelled evaluations to count themselves and release their connections.
            self._wait(max(0.5, deadline - time.monotonic()), tally, whatever=True)
        with self._lock:
            # Once stopped it takes no further monitor, and until then it has one to work for.
            self._is_stopped = is_last = self._is_unused
        if not is_last:
            return self.sinks.flush(max(0.25, deadline - time.monotonic())) and finished
        self.sampler.close()
        # A judge that still blocks the thread is not worth a longer wait.
        self._thread.stop(1.0 if finished else 0.25, self._scorer.aclose)
        if self._reporter is not None:
            self._reporter.stop()
        # A write to a disk has its chance even when the judge took all the time there was.
        return self.sinks.close(max(0.25, deadline - time.monotonic())) and finished

    def flush_at_exit(self) -> None:
        """Wait for what is queued; called when the main thread has ended."""
        unnoticed = min(self.exit_timeout, _UNNOTICED)
        if self.flush(unnoticed):
            return
        left = self.exit_timeout - unnoticed
        if left > 0:
            logger.warning(
                "the process waits for %d runs to be evaluated and %d results to be stored, %g s "
                "more at most; Ctrl-C ends it now",
                sum(1 for _ in self._undone(None)),
                sum(sink.pending for sink in self.sinks.stats().values()),
                left,
            )
        if left <= 0 or not self.flush(left):
            self.give_up_at_exit()

    def close_at_exit(self) -> None:
        """Close within `exit_timeout`; called when the interpreter ends."""
        self.close(self.exit_timeout)

    def give_up_at_exit(self) -> None:
        """Close without waiting, and log what is lost; called when the user will not wait."""
        tallies = self._tallies()

        def lost() -> tuple[int, int]:
            counts = [each.snapshot().outcomes.get("shutdown", 0) for each in tallies]
            return sum(counts), sum(sink.dropped for sink in self.sinks.stats().values())

        runs, records = lost()
        self.close(0.0)
        runs, records = lost()[0] - runs, lost()[1] - records
        if runs or records:
            logger.warning(
                "lost at the end of the process: %d runs not evaluated (counted as shutdown), %d "
                "results not stored (counted as dropped)",
                runs,
                records,
            )

    def restart_after_fork(self) -> None:
        """In a forked child: the parent's queue, threads and counts are the parent's."""
        self._scorer.restart_after_fork()
        was_stopped = self._is_stopped
        self._start()
        self._is_stopped = was_stopped
        self.sampler.restart()
        for monitor in list(self.monitors):
            before, monitor.tally = monitor.tally, Tally()
            monitor.tally.is_closed = before.is_closed
            before.abandon()
            self.emitter.watch(self, monitor.tally, owner=monitor)

    def add(self, monitor: Monitor) -> bool:
        """Take runs of a monitor, and have its counts read with the process's metrics.

        Returns:
            False where the last other monitor was closed meanwhile, and the threads with it.
        """
        with self._lock:
            if self._is_stopped:
                return False
            self.monitors.add(monitor)
        # Not before: another monitor that finds it could close it as its last.
        _ENGINES.add(self)
        self.emitter.watch(self, monitor.tally, owner=monitor)
        return True

    @property
    def _is_unused(self) -> bool:
        return all(each.tally.is_closed for each in self.monitors)

    def _hand_over_ended(self) -> bool:
        with self._lock:
            holding = list(self._holding)
        in_time = [each.hand_over_ended() for each in holding]
        return all(in_time)

    def _tallies(self) -> set[Tally]:
        return {run.tally for run in self._undone(None)} | {each.tally for each in self.monitors}

    def _undone(self, tally: Tally | None) -> Iterator[OpenRun]:
        with self._lock:
            runs = [*self._queue, *self._working.values()]
        return (run for run in runs if tally is None or run.tally is tally)

    def _wait(self, timeout: float, tally: Tally | None, *, whatever: bool = False) -> bool:
        if self.is_own_thread:
            return False
        with self._changed:
            left = list(self._undone(tally))
            if tally is not None and tally.is_given_up and not whatever:
                timeout = 0.0
            if self._queue and not self._working:
                # The thread that queued the run may have been interrupted before it woke the loop.
                self._on_loop(self._begin_judging)

            def is_done() -> bool:
                while left and left[-1].is_done:
                    left.pop()
                return not left

            return wait_for(self._changed, is_done, timeout)

    def _drop(self, runs: list[OpenRun], reason: Outcome) -> None:
        for run in runs:
            run.end(reason)
            with self._changed:
                run.is_done = True
                self._changed.notify_all()

    # --- on the worker's thread ---------------------------------------------------------------

    def _on_loop(self, call: Callable[..., object], *given: object) -> None:
        """Have something called on the worker's thread, where it runs."""
        if (loop := self._thread.running) is not None:
            with contextlib.suppress(RuntimeError):  # closed already
                loop.call_soon_threadsafe(call, *given, context=Context())

    def _begin_judging(self) -> None:
        """Begin with as many runs as may be judged at the same time."""
        with self._lock:
            self._is_woken = False
            while len(self._working) < self._concurrency and (run := self._queue.take()):
                task = asyncio.ensure_future(self._work(run))
                self._working[task] = run
                task.add_done_callback(self._ended)

    async def _work(self, run: OpenRun) -> None:
        evaluation = await self._judge(run)
        if evaluation is not None and self._reporter is not None:
            await self._reporter.report(evaluation, run.tally)

    def _ended(self, task: asyncio.Task[None]) -> None:
        with self._changed:
            run = self._working.pop(task)
            if task.cancelled():
                run.end("shutdown")  # where its first step never came, nothing else counts it
            else:
                # Asked for, or asyncio would log what was raised, the application's text included.
                task.exception()
            run.is_done = True
            self._begin_judging()
            self._changed.notify_all()

    def _cancel(self, tally: Tally | None) -> None:
        for task, run in self._working.items():
            if tally is None or run.tally is tally:
                task.cancel()

    def _say_if_none_scored(self, tally: Tally) -> None:
        found = tally.none_scored()
        if found:
            self._complaints.once(
                "none scored",
                f"of the first runs none was scored ({found}): monitor.stats() says why, and the "
                "handler's explain(run_id) what was found of a run",
            )

    def _say_why_unanswered(self, results: Mapping[str, EvaluationResult]) -> None:
        for result in results.values():
            is_logged = (result.error or "").startswith(RAISED)
            if result.status.is_unanswered and not is_logged:
                kind = result.error_type or result.status.value
                # Its message may be that of the user's own judge, and quote anything.
                self._complaints.once(
                    kind,
                    f"the judge gave no answer: {kind}; further ones are counted, not logged; the "
                    "result's `error` says more, and `ragaliq doctor` tries the judge",
                    key="unanswered",
                )

    async def _judge(self, run: OpenRun) -> Evaluation | None:
        """Have a run judged and count what became of it; returns what `on_result` gets."""
        try:
            info = run.info()
            case = self._case_of(run)
            if isinstance(self._scorer, Enqueueing):
                await self._scorer.publish(built(case), info, run.tally)
                run.end("enqueued")
                return None
            lag = max(0.0, time.time() - run.ended_at)
            try:
                evaluation = await self._scorer.score(case, info, lag=lag)
            except CircuitOpenError:
                # There may be thousands of these a second: they make no spans or events.
                results = self._scorer.unjudged(info.metric_probabilities)
                is_awaited = self._reporter is not None or run.receipt is not None
                shown = self._scorer.shown(case) if is_awaited else None
                run.tally.evaluated(run, results, unjudged=True)
                self.emitter.metrics.evaluated(info.pipeline, results)
                if shown is None:
                    return None
                evaluation = Evaluation(case=shown, results=results, run=info, lag=lag)
            else:
                missing = evaluation.case.sources.no_context
                run.tally.evaluated(run, evaluation.results, no_context=missing)
                self._say_why_unanswered(evaluation.results)
                if missing:
                    self._say_if_none_scored(run.tally)
        except JobRefusedError as error:
            self._complaints.add(f"a run cannot be enqueued ({error.reason})", error)
            run.end("incomplete_run", error.reason)
        except BudgetExceeded:
            run.end("over_budget")
        except BaseException as error:
            if is_being_cancelled():
                run.end("shutdown")
                raise
            # A judge may even raise SystemExit, which would end the worker's loop.
            self._complaints.add("a run could not be evaluated", error)
            run.end("incomplete_run", "internal_error")
            self._say_if_none_scored(run.tally)
        else:
            if run.receipt is not None:
                run.receipt.settle(evaluation)
            return evaluation
        return None

    def _case_of(self, run: OpenRun) -> RAGTestCase | RunLog:
        """The run's case, with what is known of the conversation that it is a part of.

        A log outside a conversation stays one: most of those that a limit refuses are never built.
        """
        case, name = run.case, run.session_id
        if isinstance(case, RunLog):
            name = name or case.conversation
        if not name or not self._keeps_turns:
            return case
        # Before limits: what is not judged is a turn of the conversation all the same.
        return self._conversations.joined(
            built(case), f"{run.pipeline}\n{name}", fills=run.session_id is not None
        )

    def _sweep(self) -> None:
        with self._lock:
            self._next_sweep = None
            due = list(self._sweepables)
            self._sweepables.clear()
        for each in due:
            each.sweep()


def living_engine(made_with: Mapping[str, object]) -> Engine | None:
    """The engine that was made with equal arguments and still takes runs."""
    for engine in list(_ENGINES):
        with contextlib.suppress(Exception):  # a judge of the application's may compare as it likes
            if not engine._is_stopped and engine._made_with == made_with:
                return engine
    return None


class RunQueue:
    """Runs in the order in which they are to be judged; not safe for threads by itself.

    Within a priority, first come is first served. A run that finds the queue full takes the place
    of the newest ones of the lowest priority below its own.

    Args:
        max_runs: Runs that may wait.
        max_bytes: Bytes their texts may take together.

    Attributes:
        size: Bytes the texts of all runs take.
    """

    def __init__(self, *, max_runs: int, max_bytes: int) -> None:
        self._max_runs, self._max_bytes = max_runs, max_bytes
        # By priority: 0 chosen by the rate, 1 by a rule, 2 somebody waits.
        self._levels: tuple[deque[OpenRun], ...] = (deque(), deque(), deque())
        self.size = 0

    def __len__(self) -> int:
        return sum(map(len, self._levels))

    def __iter__(self) -> Iterator[OpenRun]:
        return chain.from_iterable(reversed(self._levels))

    def put(self, run: OpenRun) -> list[OpenRun] | None:
        """Add a run.

        Returns:
            The runs that lost their place to it, or None when there is no room for it.
        """
        count, size = len(self) + 1, self.size + run.size
        displaced: list[OpenRun] = []
        if count > self._max_runs or size > self._max_bytes:
            for other in chain.from_iterable(map(reversed, self._levels[: run.priority])):
                displaced.append(other)
                count, size = count - 1, size - other.size
                if count <= self._max_runs and size <= self._max_bytes:
                    break
            else:
                return None
        for other in displaced:
            # In one line, here and below: an exception from a signal may come between two.
            _, self.size = self._levels[other.priority].pop(), self.size - other.size
        level = self._levels[run.priority]
        _, self.size = level.extend((run,)), self.size + run.size  # type: ignore[func-returns-value]
        return displaced

    def take(self) -> OpenRun | None:
        """Remove and return the run that is next."""
        for level in reversed(self._levels):
            if level:
                run = level[0]
                _, self.size = level.popleft(), self.size - run.size
                return run
        return None

    def clear(self, tally: Tally | None = None) -> list[OpenRun]:
        """Remove and return all runs, or those of one monitor."""
        gone = [run for run in self if tally is None or run.tally is tally]
        for run in gone:
            self._levels[run.priority].remove(run)
            self.size -= run.size
        return gone


class _Reporter:
    """Calls the user's function with each result.

    A function that blocks cannot be stopped. On a thread of its own, where no event loop runs, it
    blocks nothing but later calls, and those are given up, and counted, until it returns. What a
    coroutine function awaits runs on a loop of its own.
    """

    def __init__(self, on_result: ResultCallback, timeout: float, complaints: Complaints) -> None:
        self._on_result, self._timeout, self._complaints = on_result, timeout, complaints
        self._calls = WorkThread("ragaliq-on-result")
        self._coroutines = LoopThread("ragaliq-on-result-loop")
        self._blocked_since: float | None = None

    def prepare(self) -> None:
        """Start the thread while threads can still be started.

        Python 3.12.0 to 3.12.2 start none once the main thread has ended.
        """
        with contextlib.suppress(RuntimeError):  # counted once there is something to report
            self._calls.start()

    @property
    def is_own_thread(self) -> bool:
        """Whether the caller is the user's function."""
        return self._calls.is_current or self._coroutines.is_current

    async def report(self, result: Evaluation, tally: Tally) -> None:
        """Call the function and wait for its end; counts what goes wrong."""
        since = self._blocked_since
        if since is not None and time.monotonic() - since > self._timeout:
            tally.callback_timeouts += 1
            return
        limit = None
        try:
            async with asyncio.timeout(self._timeout) as limit:
                # Given up while another call blocks the thread, this one is never made.
                outcome = await self._calls.run(self._call, result)
                if inspect.isawaitable(outcome):
                    loop = self._coroutines.loop()
                    finishing = asyncio.run_coroutine_threadsafe(_finish(outcome), loop)
                    await asyncio.wrap_future(finishing)
        except BaseException as error:
            if is_being_cancelled():
                raise
            if limit is not None and limit.expired():
                tally.callback_timeouts += 1
                self._complaints.add(f"on_result took longer than {self._timeout:g} s", error)
            else:
                tally.callback_errors += 1
                self._complaints.add("on_result raised", error, in_application=True)

    def stop(self) -> None:
        """End the threads; a function that blocks one is left behind."""
        self._coroutines.stop(0.25)
        self._calls.stop(0.25)

    def _call(self, result: Evaluation) -> object:
        self._blocked_since = time.monotonic()
        try:
            with suppress():
                return self._on_result(result)
        finally:
            self._blocked_since = None


async def _finish(outcome: Awaitable[object]) -> None:
    with suppress():
        await outcome
