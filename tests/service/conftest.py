"""Starts the example service as users do: with a real server, in processes of its own."""

import os
import sys
from pathlib import Path

import pytest

from free_ports import free_port

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "fastapi_service"
for folder in (HERE, EXAMPLE):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from server import Server  # noqa: E402 - found through the path above

PROGRAMS = {
    "uvicorn": ["uvicorn", "--app-dir", "{folder}", "--port", "{port}"],
    "gunicorn": [
        *["gunicorn", "--chdir", "{folder}", "--bind", "127.0.0.1:{port}"],
        *["--preload", "--workers", "2", "--worker-class", "uvicorn_worker.UvicornWorker"],
    ],
    "gunicorn with threads": [
        *["gunicorn", "--chdir", str(HERE), "--bind", "127.0.0.1:{port}"],
        *["--preload", "--workers", "2", "--threads", "4"],
    ],
    "gunicorn with gevent": [
        *["gunicorn", "--chdir", str(HERE), "--bind", "127.0.0.1:{port}"],
        *["--workers", "2", "--worker-class", "gevent"],
    ],
    "uvicorn with workers": [
        *["uvicorn", "--app-dir", "{folder}", "--port", "{port}", "--workers", "2"],
    ],
}
OURS = ("ANTHROPIC_", "GUNICORN_", "OTEL_", "RAGALIQ_", "SERVICE_", "UVICORN_", "WEB_CONCURRENCY")


@pytest.fixture
def serve(tmp_path):
    """Start a server on a free port; its store is `store.sqlite` in the test's folder."""
    running = []

    def start(program, *, app="app:app", **environment):
        port = free_port()
        values = {"folder": str(EXAMPLE), "port": str(port)}
        module, *arguments = [part.format(**values) for part in PROGRAMS[program]]
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
        server = Server(
            [sys.executable, "-m", module, *arguments, app],
            port=port,
            log=tmp_path / "server.log",
            env={
                **inherited,
                "HOME": str(tmp_path),  # gunicorn puts a socket there
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "RAGALIQ_CAPTURE_CONTENT": "true",
                "SERVICE_STORE": f"sqlite:///{tmp_path / 'store.sqlite'}",
                **environment,
            },
        )
        running.append(server)
        return server

    yield start
    for server in running:
        server.kill()
