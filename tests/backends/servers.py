"""Starting real servers on the loopback, and ending them by process id."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / ".venv-backends"
STARTING = 100.0


def installed(*parts: str) -> str:
    """A program that `make test-backends` has installed."""
    program = ENVIRONMENTS.joinpath(*parts)
    if not program.exists():
        pytest.fail(f"{program.relative_to(ROOT)} is missing; run `make test-backends`")
    return str(program)


@contextlib.contextmanager
def serving(
    command: Sequence[str], health: str, folder: Path, env: Mapping[str, str] | None = None
) -> Iterator[None]:
    """The server, from its first healthy answer on; ended with all it started."""
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that its workers can be ended with it
        )
    try:
        _wait(health, process, log)
        yield
    finally:
        _end(process)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(health: str, process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + STARTING
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"the server ended at once:\n{log.read_text()[-3000:]}")
        with contextlib.suppress(urllib.error.URLError, TimeoutError, ConnectionError):
            urllib.request.urlopen(health, timeout=5).close()
            return
        time.sleep(0.3)
    pytest.fail(f"no answer from {health} in {STARTING:g} s:\n{log.read_text()[-3000:]}")


def _end(process: subprocess.Popen) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)
            break
    # Whatever of its workers outlived it.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
