"""Workers on a real broker: how they add up, and what handing over costs the application."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from statistics import median

import pytest
from interleaved import compare
from test_executor_latency import requests, service
from test_langchain_overhead import (
    AT_MOST,
    CALLS,
    EMPTY_AT_LEAST,
    GRACE,
    QUESTION,
    ROUNDS,
    EmptyHandler,
    chain,
)

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import CeleryExecutor, Monitor

FLEET = str(Path(__file__).parents[1] / "fleet")
if FLEET not in sys.path:
    sys.path.insert(0, FLEET)

from redis_server import RedisServer  # noqa: E402 - found through the path above
from worker_fleet import WorkerFleet, eventually, offer  # noqa: E402

JUDGE_SECONDS, CONCURRENCY, SECONDS, REPEATS = 0.2, 4, 6, 3
FULL_SPEED = CONCURRENCY / JUDGE_SECONDS  # jobs a second of one worker, if nothing else took time


@pytest.fixture
def server(tmp_path):
    (tmp_path / "redis").mkdir()
    server = RedisServer(tmp_path / "redis")
    yield server
    server.thaw()
    server.kill()


def throughput(folder, server, workers):
    """Jobs a second, from the first record to the last, of workers that are at work already."""
    fleet = WorkerFleet(folder, server)
    folder.mkdir()
    jobs = int(FULL_SPEED * SECONDS * workers)
    try:
        for _ in range(workers):
            fleet.start("--concurrency", str(CONCURRENCY), FLEET_DELAY=str(JUDGE_SECONDS))
        assert eventually(lambda: fleet.logs().count(" ready.") == workers)
        with Monitor(
            executor=CeleryExecutor(server.url()), evaluators=["faithfulness"], max_queue=jobs
        ) as monitor:
            for number in range(jobs):
                assert offer(monitor, number)
        assert eventually(lambda: len(fleet.evaluated()) == jobs, within=60.0)
        with closing(sqlite3.connect(fleet.store)) as store:
            query = "SELECT max(created_at) - min(created_at) FROM evaluations"
            (seconds,) = store.execute(query).fetchone()
        return (jobs - workers * CONCURRENCY) / seconds
    finally:
        fleet.end()


@pytest.mark.benchmark
def test_four_workers_do_nearly_four_times_what_one_does(tmp_path, server, report):
    ratios = []
    for repeat in range(REPEATS):
        one = throughput(tmp_path / f"one-{repeat}", server, 1)
        four = throughput(tmp_path / f"four-{repeat}", server, 4)
        ratios.append(four / one)
        report([f"one worker {one:.1f} jobs/s, four {four:.1f}: {four / one:.2f} times"])
    assert median(ratios) >= 3.6


@pytest.mark.benchmark
def test_handing_over_costs_a_request_no_more_than_judging_here(server, report):
    monitor = Monitor(executor=CeleryExecutor(server.url(), timeout=60.0), max_queue=1_000_000)
    handler, rag = RagaliqCallbackHandler(monitor), chain()
    callbacks = {"no handler": [], "empty": [EmptyHandler()], "handing over": [handler]}
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
    report(found.table("LangChain, sync, handing over"))
    server.thaw()
    assert monitor.close(60.0)
    assert monitor.stats().outcomes == {"handed_over": 1 + CALLS * ROUNDS * 4}
    at_most = next(iter(AT_MOST.values())) * max(EMPTY_AT_LEAST * found.base, found.added("empty"))
    assert found.added("handing over") <= at_most + GRACE * found.base


@pytest.mark.benchmark
def test_publishing_in_the_background_does_not_show_in_a_services_latency(server, report):
    import asyncio

    monitor = Monitor(executor=CeleryExecutor(server.url()))
    latencies = {"no handler": ([], []), "handing over": ([RagaliqCallbackHandler(monitor)], [])}
    rag = service()
    for _ in range(4):
        for callbacks, found in latencies.values():
            found.append(sorted(asyncio.run(requests(rag, callbacks))))
    table = {}
    for name, (_, blocks) in latencies.items():
        table[name] = [
            1000 * median(block[int(share * (len(block) - 1))] for block in blocks)
            for share in (0.5, 0.99)
        ]
    report([f"{name}: p50 {p50:.2f} ms, p99 {p99:.2f} ms" for name, (p50, p99) in table.items()])
    assert monitor.close(10.0)
    (none50, _), (over50, _) = table.values()
    assert over50 - none50 <= 0.05 * none50
