"""Where cases are evaluated: on the loop's own thread, or in a child process.

The embedded judge is work for the processor. In a process of its own it leaves the application its
interpreter; everything here but the functions that say so runs on the event loop of whoever scores.
From top to bottom: the two executors and the choice between them, the parent's hold on the child,
the messages between them, and what can be written down for the child.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import logging
import os
import socket
import struct
import subprocess
import sys
import traceback
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, get_args

from ragaliq._version import __version__
from ragaliq.core.evaluator import Evaluator
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import EvaluationResult
from ragaliq.core.sync import WorkThread
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import (
    ConfigurationError,
    JudgeError,
    JudgeProcessError,
    JudgeTimeoutError,
    RagaliqError,
)
from ragaliq.evaluators.case import evaluate_case
from ragaliq.evaluators.registry import get_evaluator, list_evaluators
from ragaliq.judges.resolve import resolve_judge

if TYPE_CHECKING:
    from ragaliq.judges.base import LLMJudge

__all__ = [
    "EXECUTORS",
    "Channel",
    "Execution",
    "Executor",
    "InProcess",
    "InThread",
    "Message",
    "choose_executor",
    "obstacle",
]

logger = logging.getLogger(__name__)

Executor = Literal["thread", "process"]
EXECUTORS: tuple[str, ...] = get_args(Executor)
Message = dict[str, Any]
"""What crosses between the two processes: plain data, written as JSON."""

_LOWEST_PRIORITY = 19
_GRACE = 5.0  # seconds beyond a case's deadline
_NO_DEADLINE = 600.0  # seconds without a sign of life, where a case has no deadline
_STARTS_TRIED = 3
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_START_WITHIN = 30.0
_EXIT_WITHIN = 0.2
_REAP_EVERY = 0.01
_LENGTH = struct.Struct(">I")
_AT_ONCE = 1 << 16
_OWN = "ragaliq.evaluators."
_HOME = str(Path(__file__).parents[2])  # where ragaliq itself is found

# The parent's own path, since the child is to find the very modules the parent found. With `-P` and
# without PYTHONPATH nothing is looked up in the application's folders before that: an agent's
# `sitecustomize` would otherwise instrument the child as well.
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from ragaliq.scoring.serve import main; main()"


class Execution(Protocol):
    """Evaluates cases, several at once; used on one event loop."""

    @property
    def executor(self) -> Executor:
        """Where cases are evaluated now."""

    @property
    def restarts(self) -> int:
        """How often the process that judges had to be started again."""

    async def evaluate(
        self, case: RAGTestCase, evaluators: Sequence[Evaluator], *, deadline: float | None
    ) -> dict[str, EvaluationResult]:
        """A result for every evaluator, by name, as `evaluate_case` gives it.

        Args:
            case: Question, context and answer.
            evaluators: Those it was made with, or some of them.
            deadline: Seconds each metric may take; None for no limit.
        """

    async def aclose(self) -> None:
        """End the process, if there is one; nothing is evaluated afterwards."""

    def disown(self) -> None:
        """In a forked child: let go of the parent's process without touching it."""


class InThread:
    """Evaluates on the thread of whoever asks.

    Args:
        judge: Who decides.
    """

    executor: Executor = "thread"
    restarts = 0

    def __init__(self, judge: LLMJudge) -> None:
        self._judge = judge

    async def evaluate(
        self, case: RAGTestCase, evaluators: Sequence[Evaluator], *, deadline: float | None
    ) -> dict[str, EvaluationResult]:
        """See `Execution`."""
        return await evaluate_case(case, evaluators, self._judge, deadline=deadline)

    async def aclose(self) -> None:
        """Nothing is held."""

    def disown(self) -> None:
        """Nothing is held."""


class InProcess:
    """Has cases evaluated by a child process; see `Execution`.

    The process starts with the first case. Where it cannot be started at all, cases are evaluated
    on the thread instead, which is said once.

    Args:
        evaluators: All that will be asked for; of ragaliq's own.
        judge: The embedded judge, for its name in failures and for the thread.
        niceness: Added to the process's priority number.
    """

    def __init__(self, evaluators: Sequence[Evaluator], judge: LLMJudge, *, niceness: int) -> None:
        self._judge = judge
        self._plan: Message = write_plan(evaluators, judge) | {"niceness": niceness}
        self._thread = InThread(judge)
        self._work = WorkThread("ragaliq-start")
        self._child: Child | None = None
        self._starting = asyncio.Lock()
        self._starts = 0
        self._failures = 0  # deaths and failed starts since the last answer
        self._gave_up = False
        self._complained = False

    @property
    def executor(self) -> Executor:
        """Where cases are evaluated: the thread, once the process could not be started."""
        return "thread" if self._gave_up else "process"

    @property
    def restarts(self) -> int:
        """How often the process was started again."""
        return max(0, self._starts - 1)

    async def evaluate(
        self, case: RAGTestCase, evaluators: Sequence[Evaluator], *, deadline: float | None
    ) -> dict[str, EvaluationResult]:
        """Evaluate a case; one that was with the process when it died is not tried again.

        Raises:
            RagaliqError: The evaluation itself raised; the message names the error's class.
        """
        names = [evaluator.name for evaluator in evaluators]
        job = {"case": case_data(case), "evaluators": names, "deadline": deadline}
        silent_for = _NO_DEADLINE if deadline is None else deadline + _GRACE
        try:
            reply = await self._ask(job, silent_for=silent_for)
        except ChildLostError as lost:
            error = _failure(lost, silent_for)
            return {each.name: each.failure_result(error, self._judge) for each in evaluators}
        if reply is None:
            return await self._thread.evaluate(case, evaluators, deadline=deadline)
        self._failures = 0
        if "failed" in reply:
            raise RagaliqError(f"the process that judges met {reply['failed']}")
        rows = [EvaluationResult.model_validate(row) for row in reply["results"]]
        return dict(zip(names, rows, strict=True))

    async def aclose(self) -> None:
        """End the process, if there is one."""
        if self._child is not None:
            await self._child.aclose()
        self._work.stop(timeout=0.0)

    def disown(self) -> None:
        """In a forked child: let go of the parent's process without touching it."""
        if self._child is not None:
            self._child.disown()

    async def _ask(self, job: Message, *, silent_for: float) -> Message | None:
        """The process's reply; None where there is no process.

        Raises:
            ChildLostError: It ended with the case, or several before they could be given it.
        """
        attempt = 1
        while (child := await self._running_child()) is not None:
            try:
                return await child.ask(job, silent_for=silent_for)
            except ChildLostError as lost:
                # A process that never had the case did not die of it.
                if lost.was_asked or attempt == _STARTS_TRIED:
                    raise
                attempt += 1
        return None

    async def _running_child(self) -> Child | None:
        if self._child is not None and self._child.is_alive:
            return self._child
        async with self._starting:
            if self._child is not None and not self._child.is_alive:
                self._mourn(self._child)
            while self._child is None and not self._gave_up:
                await self._try_to_start()
            return self._child

    def _mourn(self, child: Child) -> None:
        self._child = None
        self._failures += 1
        if not self._complained:
            self._complained = True
            logger.warning(
                "the process that judges ended (exit code %s) and is started again; "
                "further ends are counted in stats().restarts, not logged",
                child.exit_code,
            )

    async def _try_to_start(self) -> None:
        if self._failures > 1:
            pause = _FIRST_PAUSE * 2.0 ** min(self._failures - 2, 10)
            await asyncio.sleep(min(pause, _LONGEST_PAUSE))
        for attempt in range(1, _STARTS_TRIED + 1):
            try:
                self._child = await Child.start(self._plan, self._work)
            except StartFailedError as error:
                if attempt == _STARTS_TRIED:
                    self._give_up(str(error))
                else:
                    await asyncio.sleep(_FIRST_PAUSE * 2.0**attempt)
            else:
                self._starts += 1
                return

    def _give_up(self, why: str) -> None:
        self._gave_up = True
        logger.warning(
            "no process to judge in can be started here (%s); the worker's thread judges instead. "
            "To have it so from the start, set executor='thread' (Monitor, or RAGALIQ_EXECUTOR)",
            why,
        )


def _failure(lost: ChildLostError, silent_for: float) -> JudgeError:
    if lost.hung:
        return JudgeTimeoutError(
            f"the process that judges gave no sign of life in {silent_for:g} s"
        )
    return JudgeProcessError("the process that judges ended while it had this case")


def choose_executor(
    asked: str | None, *, judge: LLMJudge, evaluators: Sequence[Evaluator], niceness: int
) -> Execution:
    """The executor that was asked for, or the one that suits the judge.

    Args:
        asked: `thread`, `process`, or None for the process where it is of use and possible.
        judge: Who decides.
        evaluators: What is measured.
        niceness: How far the process steps back, 0 to 19.

    Raises:
        ConfigurationError: No such executor, or the process is asked for and not possible.
    """
    if not 0 <= niceness <= _LOWEST_PRIORITY:
        raise ConfigurationError(
            f"niceness must be within 0 and {_LOWEST_PRIORITY}, got {niceness}"
        )
    if asked is not None and asked not in EXECUTORS:
        raise ConfigurationError(
            f"no executor {asked!r}; use 'thread' or 'process' (Monitor, or RAGALIQ_EXECUTOR); "
            "for workers elsewhere, a broker's address, Monitor(executor='redis://...')"
        )
    chosen = cast("Executor | None", asked)
    hindrance = _no_interpreter() or obstacle(judge, evaluators)
    if chosen == "process" and hindrance:
        raise ConfigurationError(
            f"executor='process' is not possible here: {hindrance}; "
            "use executor='thread' (Monitor, or RAGALIQ_EXECUTOR)"
        )
    if chosen == "thread" or hindrance:
        return InThread(judge)
    return InProcess(evaluators, judge, niceness=niceness)


def _no_interpreter() -> str | None:
    if sys.platform == "win32":
        return "it needs a POSIX system"
    # Inside uWSGI or a frozen application that is the server or the application itself, and
    # starting it would start a second one.
    name = PurePath(sys.executable or "").name.lower()
    if getattr(sys, "frozen", False) or not ("python" in name or "pypy" in name):
        return "sys.executable is not a Python interpreter"
    return None


class StartFailedError(Exception):
    """The process did not start, or not in time; the message says why, in a few words."""


class ChildLostError(Exception):
    """The process ended before it answered.

    Args:
        hung: It was ended, because nothing had come from it for too long.
        was_asked: Whether it may have had the whole question.
    """

    def __init__(self, *, hung: bool, was_asked: bool = True) -> None:
        super().__init__()
        self.hung = hung
        self.was_asked = was_asked


class Child:
    """A started process; made with `start`, used on the event loop that started it."""

    def __init__(self, process: subprocess.Popen[bytes], channel: Channel) -> None:
        self._process = process
        self._channel = channel
        self._waiting: dict[int, asyncio.Future[Message | None]] = {}
        self._numbers = itertools.count(1)
        self._heard = asyncio.get_running_loop().time()
        self._is_lost = False  # nothing can be sent any more
        self._ready: asyncio.Future[Message | None] = self._expect(0)
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, plan: Message, work: WorkThread) -> Child:
        """Start a process and wait until it can judge.

        Args:
            plan: Judge, evaluators and `niceness`, as plain data.
            work: Where processes are started: it blocks.

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
            # Whatever keeps a process from being started, the thread can still judge.
            raise StartFailedError(_reason(error)) from error
        child = cls(process, Channel(ours))
        await child._greet(plan)
        return child

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it may be asked."""
        # Its end is heard of through the loop, some time after it: asked before, the loop could
        # send it one case after the other in vain.
        return not (self._is_lost or self._listening.done()) and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """What it ended with; negative for a signal."""
        return self._process.returncode

    async def ask(self, message: Message, *, silent_for: float) -> Message:
        """Send a message and wait for the reply to it.

        Args:
            message: What is asked.
            silent_for: Seconds without a sign of life, after which the process is ended.

        Raises:
            ChildLostError: The process ended first.
        """
        number = next(self._numbers)
        reply = self._expect(number)
        try:
            async with asyncio.timeout(silent_for):
                await self._channel.send({"id": number} | message)
            return await self._reply(reply, silent_for)
        except TimeoutError:
            self._process.kill()
            raise ChildLostError(hung=True) from None
        except OSError:
            self._is_lost = True
            raise ChildLostError(hung=False, was_asked=False) from None
        finally:
            self._waiting.pop(number, None)

    async def aclose(self) -> None:
        """End the process; it holds nothing that would have to be saved."""
        self._process.kill()
        await asyncio.wait({self._listening})

    def disown(self) -> None:
        """In a forked child: let go of the parent's process without touching it."""
        self._channel.close()
        self._process.returncode = 0  # not ours to wait for

    def _expect(self, number: int) -> asyncio.Future[Message | None]:
        reply: asyncio.Future[Message | None] = asyncio.get_running_loop().create_future()
        self._waiting[number] = reply
        return reply

    async def _greet(self, plan: Message) -> None:
        try:
            async with asyncio.timeout(_START_WITHIN):
                await self._channel.send(plan)
                hello = await asyncio.shield(self._ready)
        except OSError:  # it has gone already; TimeoutError is one of these
            hello = None
        except BaseException:
            self._process.kill()
            raise
        if hello is not None and hello.get("ready") == __version__:
            return
        await self.aclose()
        raise StartFailedError(
            f"exit code {self.exit_code}" if hello is None else "another version of ragaliq"
        )

    async def _reply(self, reply: asyncio.Future[Message | None], silent_for: float) -> Message:
        loop = asyncio.get_running_loop()
        asked = loop.time()
        # A process that answers others is at work, however long the queue in front of this one is.
        while (left := max(asked, self._heard) + silent_for - loop.time()) > 0:
            await asyncio.wait({reply}, timeout=left)
            if reply.done():
                break
        else:
            raise TimeoutError
        if (message := reply.result()) is None:
            raise ChildLostError(hung=False)
        return message

    async def _listen(self) -> None:
        try:
            # What cannot be read is as good as no answer: the process is ended and replaced.
            with suppress(ValueError, TypeError):
                while (message := await self._channel.receive()) is not None:
                    self._heard = asyncio.get_running_loop().time()
                    reply = self._waiting.get(message.get("id", 0))
                    if reply is not None and not reply.done():
                        reply.set_result(message)
            await self._reap(_EXIT_WITHIN)
        finally:
            # Also when the loop ends, since the monitor was forgotten without being closed.
            self._process.kill()
            await self._reap(1.0)
            self._channel.close()
            for reply in self._waiting.values():
                if not reply.done():
                    reply.set_result(None)

    async def _reap(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self._process.poll() is None and loop.time() < until:  # noqa: ASYNC110 - polled
            await asyncio.sleep(_REAP_EVERY)


def _spawn() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """The process, and our end of what connects us to it."""
    ours, theirs = socket.socketpair()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # Plug-ins of pydantic are an application's, such as a tracer's.
    environment["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    try:
        process = subprocess.Popen(  # noqa: S603 - this interpreter, this package
            [sys.executable, "-P", "-c", _PROGRAM, *_module_path()],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # signals of a terminal are for the application
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours


def _module_path() -> list[str]:
    """Where the child looks for modules: as the parent does, but not in the current folder."""
    # `''` stands for the current folder, which uvicorn, notebooks and `python -c` look in: there
    # a file of the application could take the place of a module.
    path = dict.fromkeys(os.path.abspath(entry) for entry in sys.path if entry)  # noqa: PTH100 - zips too
    return [*path, *({_HOME} - path.keys())]


def _kill_unwanted(starting: Future[tuple[subprocess.Popen[bytes], socket.socket]]) -> None:
    """End a process that was started for somebody who has stopped waiting."""
    if not starting.cancelled() and starting.exception() is None:
        process, ours = starting.result()
        ours.close()
        process.kill()
        process.wait()


def _reason(error: Exception) -> str:
    """What failed, and in which function: no text of the application comes this way."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {frames[-1].name}()" if frames else ""
    return f"{type(error).__name__}{where}: {error}"


class Channel:
    """One end of a socket pair, used on one event loop.

    Args:
        end: The connected socket; the channel's from now on.
    """

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)  # noqa: FBT003 - the name says it
        self._end = end
        self._unread = bytearray()
        self._sending = asyncio.Lock()

    async def send(self, message: Message) -> None:
        """Send a message whole.

        Raises:
            OSError: The other side is gone.
        """
        # The json module and not pydantic's: text may hold lone surrogates, scores may be NaN.
        text = json.dumps(message).encode("ascii")
        async with self._sending:
            try:
                loop = asyncio.get_running_loop()
                await loop.sock_sendall(self._end, _LENGTH.pack(len(text)) + text)
            except BaseException:
                self.hang_up()  # after half a message nothing that follows could be read
                raise

    async def receive(self) -> Message | None:
        """The next message; None when there will be no more.

        Raises:
            ValueError: What came is no message.
        """
        header = await self._take(_LENGTH.size)
        text = header and await self._take(_LENGTH.unpack(header)[0])
        if not text:
            return None
        message = json.loads(text)
        if not isinstance(message, dict):
            raise ValueError("a message is a JSON object")  # noqa: TRY004 - wrong data, not code
        return message

    def hang_up(self) -> None:
        """Let both sides see the end; `close` must still follow."""
        try:
            self._end.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # the other side was faster

    def close(self) -> None:
        """Give the socket back; nothing may be waiting on it any more."""
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


def obstacle(judge: LLMJudge, evaluators: Sequence[Evaluator]) -> str | None:
    """What of a monitor cannot be written as plain data, in words; None when all of it can."""
    from ragaliq.judges.calibration import CalibratedJudge
    from ragaliq.judges.local import LocalJudge

    screen = judge.judge if type(judge) is CalibratedJudge else judge
    if type(screen) is not LocalJudge:
        return f"the judge is a {type(screen).__name__}, not the embedded judge"
    if screen.embed:
        return "the embedded judge was given an embedding function"
    for evaluator in evaluators:
        kind = type(evaluator)
        registered = kind.name in list_evaluators() and get_evaluator(kind.name) is kind
        if not (registered and kind.__module__.startswith(_OWN)):
            return f"{kind.__name__} is not one of ragaliq's own evaluators"
        if changed := sorted(set(vars(evaluator)) - {*_settings(kind), "has_own_policy"}):
            return f"{kind.__name__} was changed after it was built: {', '.join(changed)}"
    return None


def write_plan(evaluators: Sequence[Evaluator], judge: LLMJudge) -> Message:
    """The embedded judge and these evaluators as plain data; `obstacle` must have found none."""
    from ragaliq.judges.calibration import CalibratedJudge

    calibration = judge.curve if isinstance(judge, CalibratedJudge) else None
    return {
        "judge": "local",
        "calibration": calibration and calibration.model_dump(mode="json"),
        "evaluators": [_write_evaluator(each) for each in evaluators],
    }


def read_judge(plan: Message) -> LLMJudge:
    """The judge a plan names."""
    from ragaliq.judges.calibration import Calibration

    told = plan["calibration"]
    calibration = None if told is None else Calibration.model_validate(told)
    return resolve_judge(plan["judge"], calibration=calibration)


def read_evaluators(plan: Message) -> dict[str, Evaluator]:
    """A plan's evaluators, by name."""
    return {row["name"]: _read_evaluator(row) for row in plan["evaluators"]}


def case_data(case: RAGTestCase) -> Message:
    """What evaluators look at; labels and metadata, which may hold any object, stay behind."""
    return case.model_dump(
        exclude={"name": True, "tags": True, "metadata": True, "context": {"__all__": {"metadata"}}}
    )


def _settings(kind: type[Evaluator]) -> list[str]:
    # Every evaluator keeps what it was built with under the argument's name.
    return list(inspect.signature(kind).parameters)


def _write_evaluator(evaluator: Evaluator) -> Message:
    settings = {name: getattr(evaluator, name) for name in _settings(type(evaluator))}
    # As text, so that equal policies are read as one: evaluators share a claim check when their
    # policies are equal, and a policy with a NaN in it equals itself only.
    settings["policy"] = json.dumps(evaluator.policy.model_dump())
    return {"name": evaluator.name, "settings": settings}


def _read_evaluator(row: Message) -> Evaluator:
    settings = row["settings"] | {"policy": _read_policy(row["settings"]["policy"])}
    return get_evaluator(row["name"])(**settings)


@cache
def _read_policy(written: str) -> ScoringPolicy:
    return ScoringPolicy.model_validate(json.loads(written))
