"""`ragaliq evaluate sqlite:///runs.db --pending`: runs that a monitor stored, judged later."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from loopback import BatchesServer, Reply
from ragaliq import Monitor, RAGTestCase, SpanTarget, read_records

QUICK = "?poll_interval=0.1&resend_after=0.5"
TARGET = SpanTarget(trace_id="0af7651916cd43dd8448eb211c80319c", span_id="b7ad6b7169203331")


def store(path, cases):
    with Monitor(executor=f"sqlite:///{path}", max_queue=2 * cases) as monitor:
        for number in range(cases):
            case = RAGTestCase(
                id=f"case-{number}",
                query=f"When does shop {number} open?",
                context=[f"Shop {number} opens at 9."],
                response=f"Shop {number} opens at 9. Parrots juggle lanterns.",
            )
            assert monitor.submit(case, run_id=f"run-{number}", target=TARGET, pipeline="shop")
        assert monitor.flush(30.0)
        assert monitor.stats().outcomes == {"enqueued": cases}
        assert (monitor.stats().executor, monitor.judge) == ("sqlite", None)


def judged(path):
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as sql:
            return [row[0] for row in sql.execute("SELECT run_id FROM evaluations")]
    except sqlite3.Error:
        return []


def test_runs_in_a_file_are_judged_once_by_any_judge_and_keep_their_links(ragaliq, tmp_path):
    path = tmp_path / "runs.db"
    store(path, 3)
    done = ragaliq("evaluate", f"sqlite:///{path}", "--pending", "--judge", "local")
    assert "3 judged" in done.stdout
    records = list(read_records(path))
    assert {(r.run.run_id, r.run.pipeline) for r in records} == {
        (f"run-{number}", "shop") for number in range(3)
    }
    assert all(record.run.target == TARGET for record in records)
    again = ragaliq("evaluate", f"sqlite:///{path}", "--pending")
    assert "no run was pending" in again.stdout


def test_goals_and_figures_of_pending_runs_are_those_of_any_evaluation(ragaliq, tmp_path):
    path, figures = tmp_path / "runs.db", tmp_path / "figures.json"
    store(path, 3)
    done = ragaliq(
        *("evaluate", f"sqlite:///{path}", "--pending", "--judge", "local"),
        *("--fail-under", "faithfulness=0.9", "--summary", str(figures)),
        code=1,
    )
    assert "faithfulness" in done.stderr
    written = json.loads(figures.read_text())
    assert [goal["goal"] for goal in written["goals"]] == ["faithfulness=0.9"]
    assert sorted(judged(path)) == ["run-0", "run-1", "run-2"]


def test_runs_whose_results_no_sink_stores_stay_and_end_with_code_3(ragaliq, tmp_path):
    path = tmp_path / "runs.db"
    store(path, 2)
    (tmp_path / "notes.txt").write_text("no database")
    file, sink = f"sqlite:///{path}", f"sqlite:///{tmp_path / 'notes.txt'}"
    done = ragaliq("evaluate", file, "--pending", "--judge", "local", "--sink", sink, code=3)
    assert "those runs stay in the file" in done.stderr
    done = ragaliq("evaluate", file, "--pending", "--judge", "local")
    assert "2 judged" in done.stdout


def test_batches_cost_half_and_are_emptied(ragaliq, tmp_path):
    path = tmp_path / "runs.db"
    store(path, 4)
    with BatchesServer() as server:
        done = ragaliq(
            "evaluate", f"sqlite:///{path}{QUICK}", "--pending", "--judge", "claude-batch",
            ANTHROPIC_API_KEY="not-a-key", ANTHROPIC_BASE_URL=server.url,
        )  # fmt: skip
        # Each case: its claims, its relevance, and the verdicts.
        assert len(server.paid) == len(set(server.paid)) == 12
        assert len(server.batches) == 2  # what depends on nothing, then the verdicts
    assert "(batch price; $" in done.stdout
    records = list(read_records(path))
    usage = [result.usage for record in records for result in record.results.values()]
    cost = sum(each.cost_usd for each in usage)
    assert cost > 0
    assert sum(each.saved_usd for each in usage) == pytest.approx(cost)
    with closing(sqlite3.connect(path)) as sql:
        assert sql.execute("SELECT count(*) FROM batch_requests").fetchone() == (0,)
        assert sql.execute("SELECT count(*) FROM pending_runs").fetchone() == (0,)


def test_requests_of_a_batch_that_failed_for_now_are_sent_again_and_others_are_failures(
    ragaliq, tmp_path
):
    from loopback import batches

    path = tmp_path / "runs.db"
    store(path, 2)
    results = [batches.expired(), batches.errored("invalid_request_error")]
    with BatchesServer(result=lambda _: results.pop(0) if results else None) as server:
        ragaliq(
            "evaluate", f"sqlite:///{path}{QUICK}", "--pending", "--judge", "claude-batch",
            "--metrics", "relevance",
            ANTHROPIC_API_KEY="not-a-key", ANTHROPIC_BASE_URL=server.url,
        )  # fmt: skip
        assert len(server.paid) == 1
    statuses = [result.status.value for r in read_records(path) for result in r.results.values()]
    assert sorted(statuses) == ["judge_error", "scored"]


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_batch_that_is_refused_ends_the_command_and_its_runs_stay(ragaliq, tmp_path, status):
    path = tmp_path / "runs.db"
    store(path, 2)
    with BatchesServer() as server:
        server.refusals = [status]
        command = "evaluate", f"sqlite:///{path}{QUICK}", "--pending", "--judge", "claude-batch"
        environment = {"ANTHROPIC_API_KEY": "not-a-key", "ANTHROPIC_BASE_URL": server.url}
        refused = ragaliq(*command, code=4, **environment)
        assert f"answered {status}" in refused.stderr
        assert judged(path) == server.paid == []
        ragaliq(*command, "--model", "claude-haiku-4-5", **environment)
        assert sorted(judged(path)) == ["run-0", "run-1"]
        # Nothing of what the refused batch asked another model.
        assert len(server.paid) == len(set(server.paid)) == 6


@pytest.mark.parametrize("fault", ["unknown", "unreadable", "a proxy's page"])
def test_results_that_cannot_be_had_now_are_had_later(ragaliq, tmp_path, caplog, fault):
    path = tmp_path / "runs.db"
    store(path, 2)
    with BatchesServer() as server:
        command = "evaluate", f"sqlite:///{path}{QUICK}", "--pending", "--judge", "claude-batch"
        environment = {"ANTHROPIC_API_KEY": "not-a-key", "ANTHROPIC_BASE_URL": server.url}
        if fault == "unknown":  # as with a key of another workspace
            server.lookups = [404]
            refused = ragaliq(*command, code=4, **environment)
            assert "the workspace of the key" in refused.stderr
        elif fault == "unreadable":
            server.lookups = [None, Reply(body=b"{}\n")]
        else:
            server.lookups = [Reply(body=b"<p>Sorry</p>", headers={"content-type": "text/html"})]
        ragaliq(*command, **environment)
        assert len(server.paid) == len(set(server.paid)) == 6
    assert sorted(judged(path)) == ["run-0", "run-1"]
    assert ("(ValueError)" in caplog.text) == (fault == "unreadable")
    assert ("(AttributeError)" in caplog.text) == (fault == "a proxy's page")


def test_a_lost_batch_is_not_waited_for_among_those_of_others(ragaliq, tmp_path, caplog):
    from loopback import batches

    path = tmp_path / "runs.db"
    store(path, 2)
    later = datetime.now(UTC) + timedelta(hours=2)
    with BatchesServer() as server:
        server.batches.append(batches.Batch("of-others", {}, created_at=later))  # has no end
        server.refusals = [429, 500]
        ragaliq(
            "evaluate", f"sqlite:///{path}{QUICK}", "--pending", "--judge", "claude-batch",
            ANTHROPIC_API_KEY="not-a-key", ANTHROPIC_BASE_URL=server.url,
        )  # fmt: skip
        assert len(server.paid) == len(set(server.paid)) == 6
    assert sorted(judged(path)) == ["run-0", "run-1"]
    for error in ("RateLimitError", "InternalServerError"):
        assert f"batches could not be asked for ({error}); asking again" in caplog.text


@pytest.mark.fleet
@pytest.mark.timeout(300)
def test_500_cases_killed_three_times_are_paid_for_once_and_cost_half(tmp_path):
    path, cases = tmp_path / "runs.db", 500
    store(path, cases)
    with BatchesServer() as server:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RAGALIQ_")}
        environment |= {
            "ANTHROPIC_API_KEY": "test-key",
            "ANTHROPIC_BASE_URL": server.url,
            "COLUMNS": "200",
        }

        def start():
            return subprocess.Popen(
                [
                    *(sys.executable, "-m", "ragaliq.cli", "evaluate"),
                    *(f"sqlite:///{path}{QUICK}", "--pending", "--judge", "claude-batch"),
                ],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

        def kill_when(is_time):
            running = start()
            while not is_time():
                assert running.poll() is None, running.communicate()
                time.sleep(0.002)
            running.send_signal(signal.SIGKILL)
            running.communicate()

        server.holds = True
        kill_when(lambda: server.batches)  # whether its id was stored is not known
        server.holds = False
        kill_when(lambda: "results" in server.calls)
        kill_when(lambda: len(judged(path)) > cases // 10)
        shown, said = start().communicate(timeout=200)
        assert len(server.paid) == len(set(server.paid)) == 3 * cases, said
    assert sorted(judged(path)) == sorted(f"run-{number}" for number in range(cases))
    assert "at list price)" in shown
