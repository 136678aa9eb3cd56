"""What holds for every test."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import json
import os
import signal
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from blockbuster import BlockBuster
from hypothesis import HealthCheck, settings

# No deadlines: how long an example takes says more about the machine than about the code, and
# speed is what the benchmarks are for. In CI the examples are the same in every run; elsewhere each
# run tries others, so that half of hypothesis' usual number is enough.
settings.register_profile(
    "ragaliq",
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("ragaliq")

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would every process
# that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# `langgraph dev` and LangChain's own tests raise at the first blocking call in an event loop. Ours
# do for what our modules call, on our own loops too.
_OURS = ["ragaliq", "langchain_ragaliq", "llama_index.evaluation.ragaliq"]
_CHECKED = {"langchain", "llama_index", "live", "scenarios", "applications"}


@pytest.fixture
def may_block():
    """For tests whose own judges or functions block the loop that they are called on."""


@pytest.fixture(autouse=True)
def _nothing_of_ours_blocks_an_event_loop(request):
    if request.path.parent.name not in _CHECKED or "may_block" in request.fixturenames:
        yield
        return
    guard = BlockBuster(scanned_modules=_OURS)
    # A lock that another thread holds for microseconds is no blocking call, says LangGraph as well.
    del guard.functions["threading.Lock.acquire"]
    guard.activate()
    yield
    guard.deactivate()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Nothing that is imported for the tests, nor the tests, is garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _a_small_heap():
    """Keep the garbage collector off what was there before the module's tests.

    That is the frameworks and the collected tests, a million objects. Each full collection would go
    through them anew, and many tests collect. What a test makes is collected as ever.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def loop_of_synchronous_calls(request):
    """LlamaIndex's synchronous calls make an event loop where there is none, and leave it open."""
    if inspect.iscoroutinefunction(request.function):
        yield
        return
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture(scope="session", autouse=True)
def _certificates_are_read_once():
    """Each client of an SDK reads all of the machine's certificates: 0.1 s and more."""
    read = ssl.create_default_context
    ssl.create_default_context = functools.cache(read)
    yield
    ssl.create_default_context = read


class WarmPython:
    """Runs scripts in processes of their own that have the third-party libraries already."""

    def __init__(self, folder):
        self._output = [folder / "stdout", folder / "stderr"]
        self._starter = None

    def run(self, script, *arguments, cwd, env):
        for path in self._output:
            path.write_text("")
        request = {
            "script": str(script),
            "arguments": [str(argument) for argument in arguments],
            "folder": str(cwd),
            "output": [str(path) for path in self._output],
            "environment": env,
        }
        status = self._ask(json.dumps(request))
        printed = [path.read_text(encoding="utf-8") for path in self._output]
        return subprocess.CompletedProcess([script, *arguments], status, *printed)

    def stop(self):
        if self._starter is not None:
            with self._starter as starter:
                os.killpg(starter.pid, signal.SIGKILL)  # with a script that hangs
            self._starter = None

    def _ask(self, request):
        if self._starter is None:
            unset = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
            self._starter = subprocess.Popen(
                [sys.executable, Path(__file__).with_name("warm_python.py")],
                env={**unset, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        try:
            print(request, file=self._starter.stdin, flush=True)
            return int(self._starter.stdout.readline())
        except BaseException:
            self.stop()
            raise


@pytest.fixture(scope="session")
def warm_python(tmp_path_factory):
    """For scripts that would spend their time on imports."""
    python = WarmPython(tmp_path_factory.mktemp("warm"))
    yield python
    python.stop()
