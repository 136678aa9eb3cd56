"""Results that are shared, cut short, paid for or failed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from ragaliq.records.results_file import ResultsFile, read_settings
from ragaliq.testing import MessagesServer, Reply

GOOD = {"query": "When?", "context": ["The shop opens at 9."], "response": "The shop opens at 9."}
FAITHFULNESS = ("--metrics", "faithfulness")


@pytest.fixture
def claude(ragaliq):
    """Runs `ragaliq evaluate ... --judge claude` against a server of the test's own."""

    def command(server, *arguments):
        return ragaliq(
            "evaluate", *arguments, "--judge", "claude", *FAITHFULNESS,
            ANTHROPIC_API_KEY="not-a-key", ANTHROPIC_BASE_URL=server.url,
        )  # fmt: skip

    return command


def test_a_file_that_another_run_writes_is_refused_and_not_touched(ragaliq, write_cases, tmp_path):
    cases, results = write_cases(GOOD, GOOD), tmp_path / "results.jsonl"
    ragaliq("evaluate", cases, "--out", results, *FAITHFULNESS)
    with ResultsFile(results, settings=read_settings(results)):
        before = results.read_bytes()

        done = ragaliq("evaluate", cases, "--out", results, "--resume", *FAITHFULNESS)

        assert done.returncode == 3
        assert "another run is writing to it" in done.stderr
        assert results.read_bytes() == before


def test_what_was_begun_when_the_money_ran_out_is_kept(claude, write_cases, records):
    with MessagesServer() as server:
        done = claude(
            server, write_cases(*[GOOD] * 30), "--out", "results.jsonl", "--max-cost", "0.000001",
            "--concurrency", "4",
        )  # fmt: skip
        requests = len(server.requests)

    assert done.returncode == 5
    assert "of --max-cost 1e-06" in done.stderr
    # Four cases were begun, and as many are in the file: none was paid for and thrown away.
    assert len(records()) == 4
    assert sum(r["results"]["faithfulness"]["usage"]["requests"] for r in records()) == requests


def test_the_last_case_may_spend_the_last_of_the_money(claude, write_cases, records):
    with MessagesServer() as server:
        done = claude(server, write_cases(GOOD), "--out", "results.jsonl", "--max-cost", "0.000001")

    assert done.returncode == 0, done.stderr
    assert len(records()) == 1


def test_failures_stay_until_they_are_to_be_tried_again(claude, write_cases, records):
    cases = write_cases(GOOD, GOOD | {"response": "Refuse this."}, GOOD)
    refused = Reply(status=400, body={"type": "error", "error": {"type": "x", "message": "no"}})

    def fail_on_one(request):
        return refused if "Refuse this" in json.dumps(request.body) else Reply()

    with MessagesServer(respond=fail_on_one) as server:
        claude(server, cases, "--out", "results.jsonl")
    assert [r["results"]["faithfulness"]["status"] for r in records()].count("judge_error") == 1
    with MessagesServer() as server:
        kept = claude(server, cases, "--out", "results.jsonl", "--resume")
        assert server.requests == []
        assert "the judge failed on 1 earlier cases; --retry-failed" in kept.stderr

        done = claude(server, cases, "--out", "results.jsonl", "--resume", "--retry-failed")

    assert done.returncode == 0, done.stderr
    assert sorted(r["run"]["run_id"] for r in records()) == ["case-0", "case-1", "case-2"]
    assert {r["results"]["faithfulness"]["status"] for r in records()} == {"scored"}


def test_a_termination_keeps_what_was_judged_and_shows_it(write_cases, tmp_path):
    cases = write_cases(*[GOOD] * 20_000)
    running = subprocess.Popen(
        [sys.executable, "-m", "ragaliq.cli", "evaluate", cases, "--out", "results.jsonl"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    results = tmp_path / "results.jsonl"
    while running.poll() is None and not (results.exists() and results.stat().st_size > 10_000):
        time.sleep(0.01)
    running.send_signal(signal.SIGTERM)
    shown, said = running.communicate(timeout=60)

    assert running.returncode == 143, said
    judged = results.read_text().count("\n") - 1
    assert f"{20_000 - judged:,} of 20,000 are not done" in said
    assert "kept in results.jsonl: rerun with --resume to continue" in said
    assert "ragaliq: interrupted" in said
    assert f"{results.read_text().count(chr(10)) - 1:,} judged" in shown


def test_a_form_that_cannot_be_written_is_said_and_the_results_are_kept(
    ragaliq, write_cases, records, tmp_path
):
    (tmp_path / "table.csv").symlink_to("/dev/full")

    done = ragaliq("evaluate", write_cases(GOOD), "--out", "r.jsonl", "--out", "table.csv")

    assert done.returncode == 3
    assert "table.csv: No space left on device" in done.stderr
    assert len(records("r.jsonl")) == 1
