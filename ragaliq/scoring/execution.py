"""Evaluation in a child process.

The embedded judge is CPU-bound: a child process leaves the application its interpreter. From top to
bottom: the decision whether a child process is wanted and possible, the parent's part, a started
child, the messages between them, and the serialised form of judges and metrics.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import logging
import marshal
import os
import socket
import struct
import subprocess
import sys
import traceback
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path, PurePath
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

from ragaliq._version import __version__
from ragaliq.core.concurrency import pause_before_retry
from ragaliq.core.log_once import LogOnce
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import ClaimDetail, EvaluationResult
from ragaliq.core.sync import WorkThread
from ragaliq.core.test_case import DOCUMENT_NAMES, RAGTestCase
from ragaliq.errors import (
    ConfigurationError,
    JudgeError,
    JudgeProcessError,
    JudgeTimeoutError,
    RagaliqError,
)
from ragaliq.evaluators.evaluator import Evaluator
from ragaliq.evaluators.registry import get_evaluator, list_evaluators
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.resolve import entailment_judge, resolve_judge

logger = logging.getLogger(__name__)

Executor = Literal["thread", "process"]
Message = dict[str, Any]
"""Message between the two processes: plain data."""

LOWEST_PRIORITY = 19
_BUILD_WITHIN = 60.0  # seconds without a sign of life
_GRACE = 5.0  # seconds beyond a case's deadline
_NO_DEADLINE = 600.0  # seconds without a sign of life, where a case has no deadline
_STARTS_TRIED = 3
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_START_WITHIN = 120.0
_EXIT_WITHIN = 0.2
_REAP_EVERY = 0.01
_LENGTH = struct.Struct(">I")
_AT_ONCE = 1 << 16
_HOME = str(Path(__file__).parents[2])  # where ragaliq itself is found

# The parent's own path, so that the child finds the same modules. With `-P` and without PYTHONPATH
# Python imports nothing from the application's folders before that: otherwise an agent's
# `sitecustomize` would instrument the child as well.
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from ragaliq.scoring.serve import main; main()"


def child_processes(
    asked: str | None,
    number: int,
    *,
    judge: LLMJudge,
    metrics: Sequence[Evaluator],
    niceness: int,
) -> list[ProcessExecutor]:
    """Child processes that evaluate; none if the calling thread does.

    Args:
        asked: `thread`, `process`, or None for processes if they are useful and possible.
        number: Number of processes.
        judge: The judge.
        metrics: The metrics.
        niceness: Niceness of a process, 0 to 19.

    Raises:
        ConfigurationError: There is no such executor, or a process is wanted but not possible.
    """
    if not takes_process(asked, judge=judge, metrics=metrics, niceness=niceness):
        return []
    return [ProcessExecutor(judge, niceness=niceness) for _ in range(number)]


def takes_process(
    asked: str | None, *, judge: LLMJudge, metrics: Sequence[Evaluator], niceness: int
) -> bool:
    """True if a child process evaluates; arguments as for `child_processes`.

    Raises:
        ConfigurationError: No such executor, or the process is asked for and not possible.
    """
    if not 0 <= niceness <= LOWEST_PRIORITY:
        raise ConfigurationError(f"niceness must be within 0 and {LOWEST_PRIORITY}, got {niceness}")
    if asked == "thread":
        return False
    if asked is not None and asked not in get_args(Executor):
        raise ConfigurationError(
            f"no executor {asked!r}; use 'thread' or 'process' (Monitor, or RAGALIQ_EXECUTOR); "
            "for workers elsewhere, a broker's address, Monitor(executor='redis://...')"
        )
    if hindrance := _no_interpreter() or obstacle(judge, metrics):
        if asked is None:
            return False
        raise ConfigurationError(
            f"executor='process' is not possible here: {hindrance}; "
            "use executor='thread' (Monitor, or RAGALIQ_EXECUTOR)"
        )
    return True


def _no_interpreter() -> str | None:
    if sys.platform == "win32":
        return "it needs a POSIX system"
    # In uWSGI or a frozen application the executable is the server or the application itself, and
    # starting it would start a second one.
    name = PurePath(sys.executable or "").name.lower()
    if getattr(sys, "frozen", False) or not ("python" in name or "pypy" in name):
        return "sys.executable is not a Python interpreter"
    return None


class ProcessExecutor:
    """Child process in which a `Scorer` evaluates cases, several at once, on one event loop.

    An embedded judge is CPU-bound: in the application's own process it would hold the
    interpreter's lock while requests wait. The process starts with the first case and is started
    again if it ends. If it cannot be started, `evaluate` and `evaluate_run` return None, which is
    logged once, and the scorer evaluates on the calling thread.

    Args:
        judge: The embedded judge, or a local small one.
        niceness: Added to the process's priority number.

    Attributes:
        gave_up: Whether no process could be started; none is tried again.
    """

    def __init__(self, judge: LLMJudge, *, niceness: int) -> None:
        self._judge = judge
        self._plan: Message = {**(judge.plan or {}), "niceness": niceness}
        judge.unload()  # one process has the model in its memory, not two
        self._work = WorkThread("ragaliq-start")
        self._child: Child | None = None
        self._starting = asyncio.Lock()
        self._starts = 0
        self._failures = 0  # deaths and failed starts since the last answer
        self._log_once = LogOnce(logger)
        self.gave_up = False

    @staticmethod
    def key_of(judge: LLMJudge, niceness: int) -> str:
        """Make the key of a process: judges with equal keys may share one."""
        return json.dumps([judge.plan, niceness])

    @property
    def restarts(self) -> int:
        """Number of restarts of the process."""
        return max(0, self._starts - 1)

    async def evaluate_run(
        self, run: Message, evaluators: Sequence[Evaluator], *, deadline: float | None
    ) -> tuple[RAGTestCase, dict[str, EvaluationResult]] | None:
        """Build the case of a run in the process, and evaluate it there.

        Finding its context is CPU-bound too. With one message for both, the application is woken
        once and not twice.

        Args:
            run: The run as plain data, from `RunLog.to_plain`.
            evaluators: What is measured; none if the case will change before that.
            deadline: Seconds for each of them.

        Returns:
            The case and its results; None if no process can be started, or it ended meanwhile.

        Raises:
            RagaliqError: The case cannot be built; the message names the error's class.
        """
        if (child := await self._running_child()) is None:
            return None
        job = {"run": run, "deadline": deadline} | child.asking(evaluators)
        try:
            reply = await child.ask(job, silent_for=max(_BUILD_WITHIN, _silence(deadline)))
        except ChildLostError as lost:
            if lost.hung and evaluators:
                # The judge may hang, which `evaluate` reports: build the case alone.
                return await self.evaluate_run(run, (), deadline=deadline)
            if lost.hung:
                raise JudgeProcessError("the process that judges did not build a case") from None
            return None
        results = self._results(evaluators, reply)
        return RAGTestCase.model_validate(reply["built"]), results

    async def evaluate(
        self, case: RAGTestCase, evaluators: Sequence[Evaluator], *, deadline: float | None
    ) -> dict[str, EvaluationResult] | None:
        """Evaluate like `evaluate_case`; a case that was in a process that died is not retried.

        Returns:
            The results; None if no process can be started.

        Raises:
            RagaliqError: The evaluation itself raised; the message names the error's class.
        """
        attempt = 1
        while (child := await self._running_child()) is not None:
            try:
                job = {"case": case_data(case), "deadline": deadline} | child.asking(evaluators)
                reply = await child.ask(job, silent_for=_silence(deadline))
            except ChildLostError as lost:
                # The case did not kill a process that never got it.
                if not lost.was_asked and attempt < _STARTS_TRIED:
                    attempt += 1
                    continue
                error: JudgeError = JudgeProcessError(
                    "the process that judges ended while it had this case"
                )
                if lost.hung:
                    error = JudgeTimeoutError(
                        f"the process that judges gave no sign of life in {_silence(deadline):g} s"
                    )
                return {each.name: each.failure_result(error, self._judge) for each in evaluators}
            return self._results(evaluators, reply)
        return None

    def _results(
        self, evaluators: Sequence[Evaluator], reply: Message
    ) -> dict[str, EvaluationResult]:
        self._failures = 0
        if "failed" in reply:
            raise RagaliqError(f"the process that judges met {reply['failed']}")
        rows = zip(evaluators, reply["results"], strict=True)
        return {evaluator.name: _result(row) for evaluator, row in rows}

    async def aclose(self) -> None:
        """End the process, if there is one."""
        if self._child is not None:
            await self._child.aclose()
        self._work.stop(timeout=0.0)

    def disown(self) -> None:
        """Drop the parent's process in a forked child, without touching it."""
        if self._child is not None:
            self._child.disown()

    async def _running_child(self) -> Child | None:
        if self._child is not None and self._child.is_alive:
            return self._child
        async with self._starting:
            if self._child is not None and not self._child.is_alive:
                await self._replace(self._child)
            if self._child is None and not self.gave_up:
                await self._try_to_start()
            return self._child

    async def _replace(self, child: Child) -> None:
        await child.aclose()  # what could not be sent may be known before the process has ended
        self._child = None
        self._failures += 1
        self._log_once.message(
            "ended",
            f"the process that judges ended (exit code {child.exit_code}) and is started again; "
            "further ends are counted in stats().restarts, not logged",
        )

    async def _try_to_start(self) -> None:
        if self._failures > 1:
            pause = pause_before_retry(
                self._failures - 1, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE
            )
            await asyncio.sleep(pause)
        for attempt in range(1, _STARTS_TRIED + 1):
            try:
                self._child = await Child.start(self._plan, self._work)
            except StartFailedError as error:
                if attempt < _STARTS_TRIED:
                    await asyncio.sleep(_FIRST_PAUSE * 2.0**attempt)
                    continue
                self.gave_up = True
                logger.warning(
                    "no process to judge in can be started here (%s); the worker's thread judges "
                    "instead. To have it so from the start, set executor='thread' (Monitor, or "
                    "RAGALIQ_EXECUTOR)",
                    error,
                )
            else:
                self._starts += 1
                return


def _silence(deadline: float | None) -> float:
    """Longest silence of a process, in seconds, while it has a case."""
    return _NO_DEADLINE if deadline is None else deadline + _GRACE


def _result(row: Message) -> EvaluationResult:
    # One claim after the other, so that other threads can run in between.
    claims = tuple([ClaimDetail.model_validate(claim) for claim in row["claims"]])
    return EvaluationResult.model_validate(row | {"claims": claims})


class StartFailedError(Exception):
    """The process did not start, or not in time; the message says why, in a few words."""


class ChildLostError(Exception):
    """The process ended before it answered.

    Args:
        hung: Whether it was killed because it had been silent for too long.
        was_asked: Whether it may have received the whole message. If not, the case is retried.
    """

    def __init__(self, *, hung: bool, was_asked: bool = True) -> None:
        super().__init__()
        self.hung, self.was_asked = hung, was_asked


@dataclass(eq=False)
class _PendingRequest:
    """Message to a child process that it has not answered yet.

    Attributes:
        reply: Set to the reply, or to the error if the process is lost.
        since: Time when it was sent, by the loop's clock.
        silent_for: Seconds without any message from the process after which it is killed.
    """

    reply: asyncio.Future[Message]
    since: float
    silent_for: float

    def fail(self, error: ChildLostError) -> None:
        if not self.reply.done():
            self.reply.set_exception(error)


class Child:
    """Running child process of a `ProcessExecutor`: sends it requests and matches its replies.

    Made with `start`, used on the event loop that started it. A process that is silent for too
    long is killed.
    """

    def __init__(self, process: subprocess.Popen[bytes], channel: Channel) -> None:
        self._process = process
        self._channel = channel
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, _PendingRequest] = {}
        self._numbers = itertools.count()  # 0 is the plan, whose reply has no number
        self._evaluators: dict[str, int] = {}
        self._heard = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None
        self._unsent: list[int] = []
        self._is_lost = False  # nothing can be sent any more
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, plan: Message, work: WorkThread) -> Child:
        """Start a process and wait until it is ready.

        Args:
            plan: Judge and `niceness`, as plain data.
            work: The thread that starts processes, which blocks.

        Raises:
            StartFailedError: It does not start.
        """
        starting: Future[tuple[subprocess.Popen[bytes], socket.socket]] | None = None
        try:
            starting = work.submit(_spawn)
            process, ours = await asyncio.wrap_future(starting)
        except asyncio.CancelledError:
            if starting is not None:
                starting.add_done_callback(_kill_unwanted)
            raise
        except Exception as error:
            # If no process can be started, the thread evaluates instead. This message contains no
            # text of the application.
            frames = traceback.extract_tb(error.__traceback__)
            where = f" in {frames[-1].name}()" if frames else ""
            raise StartFailedError(f"{type(error).__name__}{where}: {error}") from error
        child = cls(process, Channel(ours))
        failure = "another version of ragaliq"
        try:
            hello = await child.ask(plan, silent_for=_START_WITHIN)
            if hello.get("ready") == __version__:
                return child
        except ChildLostError:
            failure = ""
        except BaseException:
            process.kill()
            raise
        await child.aclose()
        raise StartFailedError(failure or f"exit code {child.exit_code}")

    @property
    def pid(self) -> int:
        """Id of the process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """True if messages can be sent to it."""
        # Without a system call: releasing the interpreter's lock for each case would make the
        # application wait for it. Sending to a process that has ended fails anyway.
        return not (self._is_lost or self._listening.done())

    @property
    def exit_code(self) -> int | None:
        """Exit code; negative for a signal."""
        return self._process.returncode

    def asking(self, evaluators: Sequence[Evaluator]) -> Message:
        """Make the part of a message that names the metrics.

        A metric is described in its first message and has a number from then on: monitors with
        different metrics share a process, and may be made for each request.
        """
        described, numbers = {}, []
        for evaluator in evaluators:
            text = write_evaluator(evaluator)
            if (number := self._evaluators.get(text)) is None:
                number = self._evaluators[text] = len(self._evaluators)
                described[str(number)] = text
            numbers.append(str(number))
        return {"evaluators": numbers, "described": described}

    async def ask(self, message: Message, *, silent_for: float) -> Message:
        """Send a message and wait for its reply.

        Args:
            message: The message.
            silent_for: Seconds without a sign of life after which the process is killed.

        Raises:
            ChildLostError: The process ended first.
        """
        number = next(self._numbers)
        request = _PendingRequest(self._loop.create_future(), self._loop.time(), silent_for)
        self._waiting[number] = request
        self._send(number, {"id": number} | message)
        if self._timer is None or self._timer.when() > request.since + silent_for:
            self._watch()
        try:
            return await request.reply
        finally:
            self._waiting.pop(number, None)

    def _send(self, number: int, message: Message) -> None:
        sending = self._channel.send(message)
        if sending is not self._sending:  # one task may send several messages
            self._sending, self._unsent = sending, []
            sending.add_done_callback(partial(self._sent, self._unsent))
        self._unsent.append(number)

    def _sent(self, numbers: list[int], sending: asyncio.Task[None]) -> None:
        if not _is_sent(sending):
            self._is_lost = True
            for number in numbers:
                if number in self._waiting:
                    self._waiting[number].fail(ChildLostError(hung=False, was_asked=False))

    def _watch(self) -> None:
        """Kill the process if it is overdue, else check again when it would be.

        A process that answers other cases is alive, however long a case has waited. One timer
        serves all cases: a timer for each would cost more than the rest of `ask`.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._loop.time()
        waiting = self._waiting.values()
        due = {each: max(each.since, self._heard) + each.silent_for for each in waiting}
        overdue = [each for each, at in due.items() if at <= now]
        if overdue:
            self._process.kill()
        for each in overdue:
            each.fail(ChildLostError(hung=True))
        if later := [at for at in due.values() if at > now]:
            self._timer = self._loop.call_at(min(later), self._watch)

    async def aclose(self) -> None:
        """Kill the process; it holds nothing that must be saved."""
        self._process.kill()
        if not self._listening.done():  # its loop may be closed then
            await asyncio.wait({self._listening})

    def disown(self) -> None:
        """Drop the parent's process in a forked child, without touching it."""
        self._channel.close()
        self._process.returncode = 0  # not ours to wait for

    async def _listen(self) -> None:
        try:
            # A malformed reply counts as none: the process is killed and replaced.
            with suppress(ValueError, TypeError, EOFError):
                while (message := await self._channel.receive()) is not None:
                    self._heard = self._loop.time()
                    number = message.get("id", 0)
                    request = self._waiting.get(number)
                    if request is not None and not request.reply.done():
                        request.reply.set_result(message)
            await self._reap(_EXIT_WITHIN)
        finally:
            # Also if the loop ends because the monitor was garbage-collected without being closed.
            self._process.kill()
            await self._reap(1.0)
            self._channel.close()
            if self._timer is not None:
                self._timer.cancel()
            is_sent = self._sending is None or _is_sent(self._sending)
            for number, asked in self._waiting.items():
                was_asked = is_sent or number not in self._unsent
                asked.fail(ChildLostError(hung=False, was_asked=was_asked))

    async def _reap(self, seconds: float) -> None:
        until = self._loop.time() + seconds
        while self._process.poll() is None and self._loop.time() < until:  # noqa: ASYNC110 - polled
            await asyncio.sleep(_REAP_EVERY)


def _is_sent(sending: asyncio.Task[None]) -> bool:
    return sending.done() and not sending.cancelled() and sending.exception() is None


def _spawn() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start the process; return it with our end of the socket pair."""
    ours, theirs = socket.socketpair()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # Pydantic's plug-ins belong to the application, such as a tracer's.
    environment["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    # The child uses the parent's path without the current folder (`''`, which uvicorn, notebooks
    # and `python -c` add): a file of the application could shadow a module there.
    path = dict.fromkeys(os.path.abspath(entry) for entry in sys.path if entry)  # noqa: PTH100 - zips too
    path.setdefault(_HOME)
    try:
        process = subprocess.Popen(  # noqa: S603 - this interpreter, this package
            [sys.executable, "-P", "-c", _PROGRAM, *path],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            # A terminal's signals are for the application. In a separate session Linux would share
            # the processors between the sessions first (autogroups, sched(7)) and ignore the
            # niceness.
            process_group=0,
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours


def _kill_unwanted(starting: Future[tuple[subprocess.Popen[bytes], socket.socket]]) -> None:
    """Kill a process whose caller has stopped waiting for it."""
    if not starting.cancelled() and starting.exception() is None:
        process, ours = starting.result()
        ours.close()
        process.kill()
        process.wait()


class Channel:
    """One end of a socket pair, used on one event loop.

    Messages sent at about the same time go out in one write. Each system call gives up the
    interpreter's lock, and taking it back makes the application's threads wait.

    Args:
        end: The connected socket, which the channel owns.
    """

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)  # noqa: FBT003 - the name says it
        self._end = end
        self._unread = bytearray()
        self._unsent = bytearray()
        self._sending: asyncio.Task[None] | None = None

    def send(self, *messages: Message) -> asyncio.Task[None]:
        """Send messages, each of them whole.

        Returns:
            A task that ends when they are sent, with an OSError where the other side is gone.
        """
        for message in messages:
            written = _write(message)
            self._unsent += _LENGTH.pack(len(written)) + written
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_all())
            # Retrieve the exception, or asyncio would log it if nobody waits.
            self._sending.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._sending

    async def _send_all(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._unsent:
                together, self._unsent = self._unsent, bytearray()
                await loop.sock_sendall(self._end, together)
        except BaseException:
            self.hang_up()  # after half a message nothing that follows could be read
            raise

    async def receive(self) -> Message | None:
        """Next message; None after the last one.

        Raises:
            ValueError: The received data is not a message.
        """
        header = await self._take(_LENGTH.size)
        written = header and await self._take(_LENGTH.unpack(header)[0])
        if not written:
            return None
        message = marshal.loads(written)  # noqa: S302 - of our own child or parent
        if not isinstance(message, dict):
            raise ValueError("a message is a dict")  # noqa: TRY004 - wrong data, not code
        return message

    def hang_up(self) -> None:
        """Shut the connection down for both sides; `close` must still follow."""
        with suppress(OSError):  # the other side was faster
            self._end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket; nothing may be waiting on it any more."""
        self._end.close()

    async def _take(self, size: int) -> bytes | None:
        loop = asyncio.get_running_loop()
        while len(self._unread) < size:
            try:
                came = await loop.sock_recv(self._end, _AT_ONCE)
            except OSError:  # the other side died with something unread
                return None
            if not came:
                return None
            self._unread += came
        taken = bytes(self._unread[:size])
        del self._unread[:size]
        return taken


def _write(message: Message) -> bytes:
    # marshal blocks the application's threads for a tenth of JSON's time, and writes a text that
    # several events share once. It is safe here: both ends are the same interpreter.
    try:
        return marshal.dumps(message)
    except ValueError:  # a subclass of str or float, such as LangChain's texts and NumPy's scores
        return marshal.dumps(json.loads(json.dumps(message)))


# --- judges, metrics and cases as plain data ----------------------------------------------------


def obstacle(judge: LLMJudge, evaluators: Sequence[Evaluator]) -> str | None:
    """Reason why judge or metrics cannot be serialised, in words; None if they can."""
    # A MagicMock(spec=LLMJudge) answers any attribute with another mock.
    if not isinstance(judge.plan, dict):
        return f"the judge is a {type(judge).__name__} that cannot be written as plain data"
    for evaluator in evaluators:
        kind = type(evaluator)
        registered = kind.name in list_evaluators() and get_evaluator(kind.name) is kind
        if not (registered and kind.__module__.startswith("ragaliq.evaluators.")):
            return f"{kind.__name__} is not one of ragaliq's own metrics"
        if changed := sorted(set(vars(evaluator)) - {*_settings(kind), "_fingerprint"}):
            return f"{kind.__name__} was changed after it was built: {', '.join(changed)}"
    return None


@cache
def _settings(kind: type[Evaluator]) -> list[str]:
    # Every metric keeps its arguments under their names.
    return list(inspect.signature(kind).parameters)


def read_judge(plan: Message) -> LLMJudge:
    """Make a judge by its `plan`."""
    from ragaliq.judges.calibration import Calibration

    curve, judge = plan.get("calibration"), plan["judge"]
    calibration = None if curve is None else Calibration.model_validate(curve)
    if isinstance(judge, dict):
        judge = entailment_judge()(**judge)
    return resolve_judge(judge, calibration=calibration)


_WRITTEN: WeakKeyDictionary[Evaluator, str] = WeakKeyDictionary()


def write_evaluator(evaluator: Evaluator) -> str:
    """Serialise a metric; `obstacle` must have returned None."""
    written = _WRITTEN.get(evaluator)
    if written is None:
        settings = {name: getattr(evaluator, name) for name in _settings(type(evaluator))}
        # As text, so that equal policies become one object: metrics share a claim check if their
        # policies are equal, and a policy that contains NaN equals only itself.
        settings["policy"] = json.dumps(evaluator.policy.model_dump())
        written = _WRITTEN[evaluator] = json.dumps({"name": evaluator.name, "settings": settings})
    return written


def read_evaluator(written: str) -> Evaluator:
    """Deserialise a metric."""
    row = json.loads(written)
    settings = row["settings"] | {"policy": _read_policy(row["settings"]["policy"])}
    return get_evaluator(row["name"])(**settings)


@cache
def _read_policy(written: str) -> ScoringPolicy:
    return ScoringPolicy.model_validate(json.loads(written))


def case_data(case: RAGTestCase) -> Message:
    """Write a case as plain data; of metadata, which may hold any object, only document names."""
    hidden = {"__all__": {"metadata"}}
    data = case.model_dump(
        exclude={
            "name": True,
            "tags": True,
            "metadata": True,
            "run": True,
            "context": hidden,
            "history": {"__all__": {"context": hidden}},
        }
    )
    for chunk, written in zip(case.context, data["context"], strict=True):
        if not isinstance(chunk, str) and chunk.metadata:
            names = ((key, chunk.metadata.get(key)) for key in DOCUMENT_NAMES)
            written["metadata"] = {key: name for key, name in names if isinstance(name, str)}
    return data
