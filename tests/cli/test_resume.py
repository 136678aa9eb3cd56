"""Results that are shared, cut short, paid for or failed."""

import json

import pytest

from loopback import MessagesServer, Reply
from ragaliq.records.results_file import ResultsFile, read_settings

GOOD = {"query": "When?", "context": ["The shop opens at 9."], "response": "The shop opens at 9."}
FAITHFULNESS = ("--metrics", "faithfulness")


@pytest.fixture
def claude(ragaliq):
    """Runs `ragaliq evaluate ... --judge claude` against a server of the test's own."""

    def command(server, *arguments, code=0):
        return ragaliq(
            "evaluate", *FAITHFULNESS, *arguments, "--judge", "claude", code=code,
            ANTHROPIC_API_KEY="not-a-key", ANTHROPIC_BASE_URL=server.url,
        )  # fmt: skip

    return command


def test_a_file_that_another_run_writes_is_refused_and_not_touched(ragaliq, write_cases, tmp_path):
    cases, results = write_cases(GOOD, GOOD), tmp_path / "results.jsonl"
    ragaliq("evaluate", cases, "--out", results, *FAITHFULNESS)
    with ResultsFile(results, settings=read_settings(results)):
        before = results.read_bytes()

        done = ragaliq("evaluate", cases, "--out", results, "--resume", *FAITHFULNESS, code=3)

        assert "another run is writing to it" in done.stderr
        assert results.read_bytes() == before


def test_what_was_begun_when_the_money_ran_out_is_kept(claude, write_cases, records):
    with MessagesServer() as server:
        done = claude(
            server, write_cases(*[GOOD] * 30), "--out", "results.jsonl", "--max-cost", "0.000001",
            "--concurrency", "4", code=5,
        )  # fmt: skip
        requests = len(server.requests)

    assert "of --max-cost 1e-06" in done.stderr
    # Four cases were begun, and as many are in the file: none was paid for and thrown away.
    assert len(records()) == 4
    assert sum(r["results"]["faithfulness"]["usage"]["requests"] for r in records()) == requests


def test_the_last_case_may_spend_the_last_of_the_money(claude, write_cases, records):
    with MessagesServer() as server:
        claude(server, write_cases(GOOD), "--out", "results.jsonl", "--max-cost", "0.000001")

    assert len(records()) == 1


def test_a_cap_that_cannot_be_held_is_refused_before_anything_is_sent(claude, write_cases):
    with MessagesServer() as server:
        done = claude(
            server, write_cases(GOOD), "--model", "claude-made-of-tests", "--max-cost", "1", code=2
        )

    assert "the price of model claude-made-of-tests is not known" in done.stderr
    assert not server.requests


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

        claude(server, cases, "--out", "results.jsonl", "--resume", "--retry-failed")

    assert sorted(r["run"]["run_id"] for r in records()) == ["case-0", "case-1", "case-2"]
    assert {r["results"]["faithfulness"]["status"] for r in records()} == {"scored"}


def test_a_form_that_cannot_be_written_is_said_and_the_results_are_kept(
    ragaliq, write_cases, records, tmp_path
):
    (tmp_path / "table.csv").symlink_to("/dev/full")

    done = ragaliq("evaluate", write_cases(GOOD), "--out", "r.jsonl", "--out", "table.csv", code=3)

    assert "table.csv: No space left on device" in done.stderr
    assert len(records("r.jsonl")) == 1


ADDED = ("--metrics", "faithfulness,context_precision", "--out", "results.jsonl", "--resume")


def results_of(records):
    return {r["run"]["run_id"]: set(r["results"]) for r in records()}


def test_a_metric_that_is_added_is_asked_about_alone(claude, write_cases, records, tmp_path):
    cases = write_cases(GOOD, GOOD)
    with MessagesServer() as server:
        claude(server, cases, "--out", "results.jsonl")
    before = records()
    with MessagesServer() as server:
        claude(server, cases, *ADDED, "--summary", "summary.json")
        asked = [json.dumps(request.body) for request in server.requests]

    both = {"faithfulness", "context_precision"}
    assert results_of(records) == {"case-0": both, "case-1": both}
    kept = {r["case_id"]: r["results"]["faithfulness"] for r in records()}
    assert kept == {r["case_id"]: r["results"]["faithfulness"] for r in before}
    # One request a case, for the one chunk it has.
    assert len(asked) == 2
    figures = json.loads((tmp_path / "summary.json").read_text())
    assert {name: each["scored"] for name, each in figures["metrics"].items()} == {
        "faithfulness": 2, "context_precision": 2,
    }  # fmt: skip
    assert "revised" not in (tmp_path / "results.jsonl").read_text().splitlines()[0]


def test_adding_a_metric_can_be_interrupted_at_any_case(claude, write_cases, records, ragaliq):
    cases = write_cases(*[GOOD] * 6)
    with MessagesServer() as server:
        claude(server, cases, "--out", "results.jsonl")
        added = ("--concurrency", "1", *ADDED)
        spent = sum(r["results"]["faithfulness"]["usage"]["cost_usd"] for r in records())
        claude(server, cases, *added, "--max-cost", str(spent + 1e-9), code=5)
        found = sorted(map(len, results_of(records).values()))
        requests = len(server.requests)
        claude(server, cases, *added)

        assert found == [1, 1, 1, 1, 1, 2]
        assert len(server.requests) == requests + 5
    assert set(map(len, results_of(records).values())) == {2}
    assert len(records()) == 6
