"""Makes the demo's modules importable and runs the demos as users do: as scripts."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "examples" / "demo"
if str(DEMO) not in sys.path:
    sys.path.insert(0, str(DEMO))

# Loaded by the child at its start: a connection to anywhere but this machine fails the run.
NO_NETWORK = """
import os, socket
def _refuse(name):
    original = getattr(socket.socket, name)
    def connect(self, address):
        host = address[0] if isinstance(address, tuple) else "localhost"
        if host not in ("127.0.0.1", "::1", "localhost"):
            os.write(2, b"the demo used the network\\n")
            os._exit(97)
        return original(self, address)
    setattr(socket.socket, name, connect)
_refuse("connect")
_refuse("connect_ex")
"""
OURS = ("ANTHROPIC_", "OTEL_", "OPENINFERENCE_", "RAGALIQ_", "FORCE_COLOR", "NO_COLOR", "COLUMNS")


def offline(folder, environment):
    """The variables of a process that starts in `folder` and reaches no machine but this one."""
    (folder / "sitecustomize.py").write_text(NO_NETWORK)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
    path = os.pathsep.join(filter(None, [str(folder), inherited.get("PYTHONPATH")]))
    # No profile of the machine's user may stand in for a key.
    ours = {"HOME": str(folder), "PYTHONPATH": path, "COLUMNS": "200"}
    return {**inherited, **ours, **environment}


def run_anew(script, folder, **environment):
    """Run one of the demos as a user does, with everything still to be imported."""
    return subprocess.run(
        [sys.executable, DEMO / script],
        check=False,
        cwd=folder,
        env=offline(folder, environment),
        capture_output=True,
        encoding="utf-8",
        timeout=100,
    )


@pytest.fixture
def run_demo(tmp_path, warm_python):
    """Run one of the demos in a process of its own, reaching no machine but this one."""

    def run(script, *, arguments=(), **environment):
        return warm_python.run(
            DEMO / script, *arguments, cwd=tmp_path, env=offline(tmp_path, environment)
        )

    return run


@pytest.fixture
def fresh_run(tmp_path):
    """Runs a demo where nothing is imported beforehand."""
    return lambda script: run_anew(script, tmp_path)


@pytest.fixture(scope="session")
def plain_runs(tmp_path_factory):
    """What each demo shows a user who sets nothing; run once, and anew."""
    return cache(lambda script: run_anew(script, tmp_path_factory.mktemp("demo")))
