"""A real Redis server for every test that asks for one."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ragaliq import CeleryExecutor, Monitor
from ragaliq.cli.app import run

HERE = Path(__file__).parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from redis_server import PROGRAM, RedisServer  # noqa: E402 - found through the path above
from worker_fleet import WorkerFleet  # noqa: E402


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.fleet)


@pytest.fixture
def redis_server(tmp_path):
    if PROGRAM is None:
        # In CI a test that did not run must not look like one that passed.
        refuse = pytest.fail if os.environ.get("CI") else pytest.skip
        refuse("redis-server is missing; `make redis` installs Debian's package (as root)")
    folder = tmp_path / "redis"
    folder.mkdir()
    server = RedisServer(folder)
    yield server
    server.thaw()
    server.kill()


@pytest.fixture
def fleet(tmp_path, redis_server):
    workers = WorkerFleet(tmp_path, redis_server)
    yield workers
    workers.end()


@pytest.fixture
def handing_over(redis_server):
    """Makes monitors that hand over to the broker, and closes them."""
    monitors = []

    def build(*, timeout=1.0, max_job_bytes=1_000_000, **options):
        executor = CeleryExecutor(redis_server.url(), timeout=timeout, max_job_bytes=max_job_bytes)
        monitors.append(Monitor(executor=executor, evaluators=["faithfulness"], **options))
        return monitors[-1]

    yield build
    for monitor in monitors:
        monitor.close(timeout=1.0)


@pytest.fixture
def ragaliq_cli(redis_server, monkeypatch, capsys):
    """Runs `ragaliq ARGUMENTS` in this process."""

    def command(*arguments):
        monkeypatch.setenv("RAGALIQ_BROKER_URL", redis_server.url())
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setattr(sys, "argv", ["ragaliq", *arguments])
        capsys.readouterr()
        code = run()
        written = capsys.readouterr()
        return SimpleNamespace(code=code, stdout=written.out, stderr=written.err)

    return command
