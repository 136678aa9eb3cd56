"""How large a worker of the compose file is, how much it does, and what a waiting job takes."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
import redis

from ragaliq import CeleryExecutor, Monitor, RAGTestCase, read_records

DEPLOY = Path(__file__).parents[1] / "deploy"
if str(DEPLOY) not in sys.path:
    sys.path.insert(0, str(DEPLOY))

from stack import Stack, becomes, free_port  # noqa: E402 - found through the path above

NOTES = json.loads((DEPLOY.parents[1] / "examples/fastapi_service/notes.json").read_text())
JOBS = 400


@pytest.fixture
def stack(tmp_path):
    stack = Stack(tmp_path, free_port())
    stack.start("redis")
    assert becomes(lambda: stack.is_healthy("redis"))
    yield stack
    stack.end()


def publish(stack):
    """Have the broker hold the jobs; returns the bytes each takes there."""
    url = f"redis://:5ecret@127.0.0.1:{stack.broker}/0"
    with redis.Redis.from_url(url) as client:
        before = client.info("memory")["used_memory"]
        with Monitor(executor=CeleryExecutor(url), max_queue=JOBS) as monitor:
            for number in range(JOBS):
                note = NOTES[number % len(NOTES)]
                other = NOTES[(number + 1) % len(NOTES)]
                case = RAGTestCase(
                    query=note["question"],
                    context=[note["text"], other["text"]],
                    response=note["answer"],
                )
                assert monitor.submit(case, run_id=f"run-{number}")
        return (client.info("memory")["used_memory"] - before) / JOBS


def processes(pid):
    """A process and what it started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in processes(int(child)))]


def megabytes(pid):
    """Proportional set size: what processes share is counted once."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def work_off(stack, *arguments):
    """Start a worker; its size, and jobs a second from the first record to the last."""
    stack.start("worker", *arguments)
    assert becomes(lambda: stored(stack) == JOBS, within=100.0), stack.logs()
    pids = processes(stack.pid("worker"))
    times = sorted(record.created_at for record in read_records(stack.store))
    return SimpleNamespace(
        megabytes=[megabytes(pid) for pid in pids],
        jobs=(JOBS - 1) / (times[-1] - times[0]),
    )


def stored(stack):
    if not stack.store.exists():
        return 0
    with closing(sqlite3.connect(stack.store)) as store, suppress(sqlite3.Error):
        return store.execute("SELECT count(*) FROM evaluations").fetchone()[0]
    return 0


@pytest.mark.benchmark
@pytest.mark.parametrize("concurrency", [1, 2])
def test_an_embedded_judges_worker_and_its_jobs(stack, report, concurrency):
    taken = publish(stack)
    worker = work_off(stack, "--concurrency", str(concurrency))
    begun = time.monotonic()
    assert stack.is_healthy("worker")
    asked = time.monotonic() - begun
    each = ", ".join(f"{size:.0f}" for size in worker.megabytes)
    report(
        [
            f"{concurrency} processes: {worker.jobs:.0f} jobs/s",
            f"{sum(worker.megabytes):.0f} MB ({each})",
            f"a waiting job takes {taken:.0f} bytes; a health check takes {asked:.1f} s",
        ]
    )
    assert worker.jobs > 1


@pytest.mark.benchmark
def test_a_worker_whose_judge_is_elsewhere(stack, report):
    stack.start("worker", "--judge", "claude", environment={"ANTHROPIC_API_KEY": "none"})
    assert becomes(lambda: stack.is_healthy("worker"))
    (alone,) = [megabytes(pid) for pid in processes(stack.pid("worker"))]
    report([f"16 threads, waiting for jobs: {alone:.0f} MB"])
    assert alone > 1
