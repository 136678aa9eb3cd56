"""What publishing to a real broker costs the application."""

import sys
from functools import partial
from pathlib import Path

import asking
import pytest
from interleaved import compare
from test_handler_overhead import ALL, CALLS, EMPTY, NONE, ROUNDS, allowed

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import Monitor
from ragaliq.worker import BrokerExecutor

FLEET = str(Path(__file__).parents[1] / "fleet")
if FLEET not in sys.path:
    sys.path.insert(0, FLEET)

from broker_servers import RedisServer  # noqa: E402 - found through the path above


@pytest.fixture
def server(tmp_path):
    (tmp_path / "redis").mkdir()
    server = RedisServer(tmp_path / "redis")
    yield server
    server.thaw()
    server.kill()


@pytest.mark.benchmark
def test_enqueueing_costs_a_request_no_more_than_judging_here(server, report):
    monitor = Monitor(executor=BrokerExecutor(server.url(), timeout=60.0), max_queue=1_000_000)
    handler = RagaliqCallbackHandler(monitor)
    listening = {NONE: [], EMPTY: [asking.EmptyCallbackHandler()], "enqueueing": [handler]}

    def catch_up():
        # As in the other benchmarks of the request path, what the background does waits.
        server.thaw()
        assert monitor.flush(60.0)
        server.freeze()

    with asking.langchain() as ask:
        variants = {name: partial(ask, handlers) for name, handlers in listening.items()}
        found = compare(variants, calls=CALLS, rounds=ROUNDS, passes=4, between=catch_up)
    report(found.table("LangChain, sync, enqueueing"))
    server.thaw()
    assert monitor.close(60.0)
    assert monitor.stats().outcomes == {"enqueued": found.calls}
    assert found.added("enqueueing") <= allowed(found)[ALL]
