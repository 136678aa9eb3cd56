"""The parent's hold on the one process that judges for it."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import subprocess
import sys
import traceback
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

from ragaliq._version import __version__
from ragaliq.core.sync import WorkThread
from ragaliq.execution.channel import Channel, Message

__all__ = ["Child", "ChildLostError", "StartFailedError"]

_START_WITHIN = 30.0
_EXIT_WITHIN = 0.2
_REAP_EVERY = 0.01

_HOME = str(Path(__file__).parents[2])  # where ragaliq itself is found

# The parent's own path, since the child is to find the very modules the parent found. With `-P` and
# without PYTHONPATH nothing is looked up in the application's folders before that: an agent's
# `sitecustomize` would otherwise instrument the child as well.
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[1:]; from ragaliq.execution.serve import main; main()"
)


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

    async def ask(self, message: Message, *, patience: float) -> Message:
        """Send a message and wait for the reply to it.

        Args:
            message: What is asked.
            patience: Seconds without a sign of life, after which the process is ended.

        Raises:
            ChildLostError: The process ended first.
        """
        number = next(self._numbers)
        reply = self._expect(number)
        try:
            async with asyncio.timeout(patience):
                await self._channel.send({"id": number} | message)
            return await self._reply(reply, patience)
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

    async def _reply(self, reply: asyncio.Future[Message | None], patience: float) -> Message:
        loop = asyncio.get_running_loop()
        asked = loop.time()
        # A process that answers others is at work, however long the queue in front of this one is.
        while (left := max(asked, self._heard) + patience - loop.time()) > 0:
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
