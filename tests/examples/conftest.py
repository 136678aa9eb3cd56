"""Makes the demo's modules importable and runs the demos as users do: as scripts."""

import os
import subprocess
import sys
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


@pytest.fixture
def run_demo(tmp_path):
    """Run one of the demos in a process of its own, reaching no machine but this one."""
    (tmp_path / "sitecustomize.py").write_text(NO_NETWORK)

    def run(script, *, arguments=(), **environment):
        # No profile of the machine's user may stand in for a key.
        environment.setdefault("HOME", str(tmp_path))
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
        path = os.pathsep.join(filter(None, [str(tmp_path), inherited.get("PYTHONPATH")]))
        return subprocess.run(
            [sys.executable, DEMO / script, *arguments],
            check=False,
            cwd=tmp_path,
            env={**inherited, "PYTHONPATH": path, "COLUMNS": "200", **environment},
            capture_output=True,
            encoding="utf-8",
            timeout=100,
        )

    return run
