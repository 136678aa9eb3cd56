"""Real servers for every test that asks for one."""

import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from ragaliq import Budget, Monitor, RateLimits
from ragaliq.cli.app import run
from ragaliq.scoring.limits.budget import BudgetLedger
from ragaliq.scoring.limits.rate_limits import RateLimiter
from ragaliq.worker import BrokerExecutor

HERE = Path(__file__).parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from broker_servers import PROGRAMS, NatsServer, RabbitServer, RedisServer  # noqa: E402 - see above
from worker_fleet import WorkerFleet  # noqa: E402

SERVERS = {"redis": RedisServer, "nats": NatsServer, "rabbitmq": RabbitServer}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.fleet)


def _server(kind, tmp_path):
    if PROGRAMS[kind] is None:
        # In CI a test that did not run must not look like one that passed.
        refuse = pytest.fail if os.environ.get("CI") else pytest.skip
        refuse(f"{kind}-server is missing; `make brokers` installs Debian's package (as root)")
    folder = tmp_path / kind
    folder.mkdir()
    return SERVERS[kind](folder)


@pytest.fixture
def redis_server(tmp_path):
    server = _server("redis", tmp_path)
    yield server
    server.kill()


@pytest.fixture
def rabbit_server(tmp_path):
    server = _server("rabbitmq", tmp_path)
    yield server
    server.close()


@pytest.fixture
async def budget_of(redis_server):
    """Makes budgets that share the storage, each as of a process of its own; closes them."""
    async with AsyncExitStack() as stack:

        def build(*, hour=3600.0, pause=0.02, **limits):
            shared = Budget(**{"storage": redis_server.url(), "local_share": 0.5} | limits)
            made = BudgetLedger(shared, hour=hour, pause=pause)
            stack.push_async_callback(made.aclose)
            return made

        yield build


@pytest.fixture
async def turns_of(redis_server):
    """The same for rates."""
    async with AsyncExitStack() as stack:

        def build(**limits):
            shared = RateLimits(**{"storage": redis_server.url(), "local_share": 0.25} | limits)
            made = RateLimiter(shared, pause=0.02)
            stack.push_async_callback(made.aclose)
            return made

        yield build


@pytest.fixture(params=["redis", "nats", "rabbitmq"])
def broker(request, tmp_path):
    """Each broker in turn."""
    server = _server(request.param, tmp_path)
    server.kind = request.param
    yield server
    server.close()


@pytest.fixture
def fleet(tmp_path, broker):
    workers = WorkerFleet(tmp_path, broker)
    yield workers
    workers.end()


@pytest.fixture
def enqueueing(request):
    """Makes monitors that publish to the broker, and closes them."""
    monitors = []
    names = request.fixturenames
    server = request.getfixturevalue("broker" if "broker" in names else "redis_server")

    def build(*, timeout=5.0, max_job_bytes=1_000_000, **options):
        executor = BrokerExecutor(server.url(), timeout=timeout, max_job_bytes=max_job_bytes)
        monitors.append(Monitor(executor=executor, metrics=["faithfulness"], **options))
        return monitors[-1]

    yield build
    for monitor in monitors:
        monitor.close(timeout=1.0)


@pytest.fixture
def ragaliq_cli(broker, monkeypatch, capsys):
    """Runs `ragaliq ARGUMENTS` in this process."""

    def command(*arguments):
        monkeypatch.setenv("RAGALIQ_BROKER_URL", broker.url())
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setattr(sys, "argv", ["ragaliq", *arguments])
        capsys.readouterr()
        code = run()
        written = capsys.readouterr()
        return SimpleNamespace(code=code, stdout=written.out, stderr=written.err)

    return command
