"""What publishing to a real broker costs the application."""

import sys
from pathlib import Path

import pytest
from interleaved import compare
from rag_chain import QUESTION, rag_chain
from test_langchain_overhead import AT_MOST, CALLS, EMPTY_AT_LEAST, GRACE, ROUNDS, EmptyHandler

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import BrokerExecutor, Monitor

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
    handler, rag = RagaliqCallbackHandler(monitor), rag_chain()
    callbacks = {"no handler": [], "empty": [EmptyHandler()], "enqueueing": [handler]}
    variants = {
        name: (lambda given=given: rag.invoke(QUESTION, {"callbacks": given}))
        for name, given in callbacks.items()
    }
    for variant in variants.values():
        variant()

    def catch_up():
        # As in the other benchmarks of the request path, what the background does waits.
        server.thaw()
        assert monitor.flush(60.0)
        server.freeze()

    found = compare(variants, calls=CALLS, rounds=ROUNDS, passes=4, between=catch_up)
    report(found.table("LangChain, sync, enqueueing"))
    server.thaw()
    assert monitor.close(60.0)
    assert monitor.stats().outcomes == {"enqueued": 1 + CALLS * ROUNDS * 4}
    at_most = next(iter(AT_MOST.values())) * max(EMPTY_AT_LEAST * found.base, found.added("empty"))
    assert found.added("enqueueing") <= at_most + GRACE * found.base
