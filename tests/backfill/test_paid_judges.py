"""A judge that is paid, on a server that speaks the Messages API: costs, failures, connections."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from loopback import MessagesServer, Reply
from ragaliq import score_batch


@pytest.fixture
def claude(monkeypatch):
    """Starts a server that `judge="claude"` asks."""
    started = []

    def start(respond=None):
        server = MessagesServer(respond=respond)
        started.append(server)
        server.__enter__()
        monkeypatch.setenv("ANTHROPIC_API_KEY", f"key-{len(started)}")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        # The judge is the process's: another server needs another one.
        monkeypatch.setattr("ragaliq.tables._JUDGES", {})
        return server

    yield start
    for server in started:
        server.__exit__(None, None, None)


def test_each_row_says_what_it_cost(claude, rows):
    server = claude()
    table = pa.Table.from_pylist(rows)
    scored = score_batch(table, judge="claude").to_pylist()
    first, blank, _ = scored
    assert (first["faithfulness_status"], first["ragaliq_judge"]) == ("scored", "claude")
    assert first["ragaliq_model"].startswith("claude-")
    assert (blank["faithfulness_status"], blank["relevance_status"]) == ("empty_answer",) * 2
    assert (blank["ragaliq_tokens"], blank["ragaliq_cost_usd"]) == (0, 0.0)
    # Claims, verdicts and relevance of the first; of the answer without context relevance alone.
    assert len(server.requests) == 4
    assert all(scored[at]["ragaliq_tokens"] > 100 for at in (0, 2))
    assert all(0 < scored[at]["ragaliq_cost_usd"] < 0.1 for at in (0, 2))


def test_a_wrong_key_is_a_status_of_every_row_and_no_score(claude, rows):
    refuse = Reply(status=401, body=b'{"type": "error", "error": {"type": "authentication_error"}}')
    claude(lambda _: refuse)
    for row in score_batch(pa.Table.from_pylist([rows[0]] * 3), judge="claude").to_pylist():
        assert (row["faithfulness_status"], row["faithfulness_score"]) == ("judge_error", None)
        assert "key" in row["faithfulness_error"]
        assert "key-1" not in row["faithfulness_error"]
        assert "shop" not in row["faithfulness_error"]


def test_threads_share_the_judge_and_its_connections(claude, rows):
    server = claude()
    tables = [pa.Table.from_pylist([rows[0]] * 4)] * 6
    with ThreadPoolExecutor(3) as threads:
        for scored in threads.map(lambda table: score_batch(table, judge="claude"), tables):
            assert scored.column("faithfulness_status").to_pylist() == ["scored"] * 4
    assert len(server.requests) == 6 * 4 * 3
