"""`ragaliq evaluate --judge claude-batch`: killed in the middle, each case is paid for once."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from ragaliq.testing import BatchesServer

CASES = 500
FEW = 50
COMMAND = [
    *(sys.executable, "-m", "ragaliq.cli", "evaluate", "cases.jsonl"),
    *("--judge", "claude-batch", "--out"),
]
QUICK = "max_wait=0.5&poll_interval=0.1&resend_after=0.5"


def case(number):
    return {
        "id": f"case-{number}",
        "query": f"When does shop {number} open?",
        "context": [f"Shop {number} opens at 9."],
        "response": f"Shop {number} opens at 9. Parrots juggle lanterns.",
    }


@pytest.fixture
def server():
    with BatchesServer() as running:
        yield running


@pytest.fixture
def start(tmp_path, server):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RAGALIQ_")}
    environment |= {
        "ANTHROPIC_API_KEY": "test-key",
        "ANTHROPIC_BASE_URL": server.url,
        "RAGALIQ_BATCH_STORE": f"sqlite:///{tmp_path}/batches.db?{QUICK}",
        "COLUMNS": "200",
    }

    def run(*arguments, cases=FEW, out="results.jsonl"):
        (tmp_path / "cases.jsonl").write_text(
            "".join(json.dumps(case(number)) + "\n" for number in range(cases))
        )
        return subprocess.Popen(
            [*COMMAND, out, *arguments],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return run


def kill_when(running, is_time):
    while not is_time():
        assert running.poll() is None, running.communicate()
        time.sleep(0.005)
    running.send_signal(signal.SIGKILL)
    running.communicate()


def judged(tmp_path):
    results = tmp_path / "results.jsonl"
    lines = results.read_text().splitlines()[1:] if results.exists() else []
    return [json.loads(line)["run"]["run_id"] for line in lines]


@pytest.mark.fleet
@pytest.mark.timeout(300)
def test_500_cases_killed_in_the_middle_are_paid_for_once_and_cost_half(tmp_path, server, start):
    # Killed while the first batches are under way, while results are fetched, and later.
    server.holds = True
    kill_when(start(cases=CASES), lambda: server.batches)
    server.holds = False
    running = start("--resume", cases=CASES)
    kill_when(running, lambda: "results" in server.calls)
    running = start("--resume", cases=CASES)
    kill_when(running, lambda: len(judged(tmp_path)) > CASES // 10)

    shown, said = start("--resume", cases=CASES).communicate(timeout=200)
    assert sorted(judged(tmp_path)) == sorted(case(number)["id"] for number in range(CASES))
    # Each case: its claims, its relevance, and the verdicts.
    assert len(server.paid) == len(set(server.paid)) == 3 * CASES, said
    assert f"{CASES} judged" in shown
    records = [
        json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()[1:]
    ]
    usage = [metric["usage"] for record in records for metric in record["metrics"]]
    cost = sum(part["cost_usd"] for part in usage)
    assert sum(part["saved_usd"] for part in usage) == pytest.approx(cost)
    assert f"${cost:,.4f} (batch price: ${cost:,.4f} less than the list price" in shown


def waiting(tmp_path):
    """How many requests each process waits for, by what is in the store."""
    try:
        connection = sqlite3.connect(f"file:{tmp_path}/batches.db?mode=ro", uri=True)
        with closing(connection):
            rows = connection.execute("SELECT count(*) FROM batch_holds GROUP BY owner").fetchall()
    except sqlite3.OperationalError:  # it is about to be made
        return []
    return [row[0] for row in rows]


@pytest.mark.fleet
@pytest.mark.timeout(120)
def test_two_processes_that_ask_the_same_pay_once_and_one_goes_on_without_the_other(
    tmp_path, server, start
):
    server.holds = True
    first = start("--metrics", "relevance")
    second = start("--metrics", "relevance", out="second.jsonl")
    while not (server.batches and waiting(tmp_path) == [FEW, FEW]):
        assert first.poll() is second.poll() is None
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    server.holds = False

    shown, said = second.communicate(timeout=100)
    assert f"{FEW} judged" in shown, said
    assert len(server.paid) == len(set(server.paid)) == FEW


def test_an_interrupt_says_so_and_what_was_sent_is_there_for_the_next_run(tmp_path, server, start):
    server.holds = True
    running = start("--metrics", "relevance")
    while not server.batches:
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130, said
    assert "Traceback" not in said

    server.holds = False
    shown, said = start("--metrics", "relevance", "--resume").communicate(timeout=100)
    assert f"{FEW} judged" in shown, said
    assert len(server.paid) == len(set(server.paid)) == FEW


def test_an_estimate_shows_the_discount_and_needs_neither_key_nor_store(ragaliq, write_cases):
    write_cases(*({"query": f"q {n}", "response": f"a {n}", "context": ["c"]} for n in range(400)))
    done = ragaliq("estimate", "cases.jsonl", "--judge", "claude-batch")
    full = ragaliq("estimate", "cases.jsonl", "--judge", "claude")

    assert done.returncode == 0, done.stderr
    price = float(done.stdout.split("$")[1].split()[0])
    assert f"(batch price; ${full.stdout.split('$')[1].split()[0]} at list price)" in done.stdout
    assert price == pytest.approx(float(full.stdout.split("$")[1].split()[0]) / 2, abs=0.006)


def test_without_a_store_it_says_what_is_missing(ragaliq, write_cases):
    write_cases({"query": "q", "response": "a", "context": ["c"]})
    done = ragaliq(
        "evaluate", "cases.jsonl", "--judge", "claude-batch", ANTHROPIC_API_KEY="test-key"
    )

    assert done.returncode != 0
    assert "RAGALIQ_BATCH_STORE" in done.stderr
