"""LangGraph's development server, which raises at every blocking call on an event loop."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

pytestmark = pytest.mark.langgraph_server

HERE = Path(__file__).parent
RUNS = 7


def post(url, body):
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


@pytest.fixture(scope="module")
def server(tmp_path_factory, unused_tcp_port_factory):
    folder = tmp_path_factory.mktemp("server")
    # It wants the application in the folder it is started in, where it also keeps its state.
    for name in ("agent.py", "attached.py", "langgraph.json"):
        shutil.copy(HERE / name, folder)
    port, store, log = unused_tcp_port_factory(), folder / "deep/er/live.db", folder / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"),
                *(
                    "--host",
                    "127.0.0.1",
                    "--port",
                    str(port),
                    "--config",
                    str(HERE / "langgraph.json"),
                ),
            ],
            cwd=folder,
            env={**os.environ, "RAGALIQ_TEST_STORE": str(store)},
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    base = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"{base}/ok", timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, log.read_text()
                time.sleep(0.5)
        yield base, store, log
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        finally:
            left = subprocess.run(
                ["pgrep", "-g", str(process.pid)], capture_output=True, text=True, check=False
            ).stdout.split()
            if process.poll() is None or left:
                os.killpg(process.pid, signal.SIGKILL)
    assert left == [], "something of the server's is still running"


def ask(base, graph):
    state = {"question": "How long do refunds take?"}
    return post(f"{base}/runs/wait", {"assistant_id": graph, "input": state})


def test_every_run_is_scored_and_stored_and_no_call_blocks_a_loop(server):
    base, store, log = server
    for _ in range(RUNS):
        assert ask(base, "plain")["answer"].startswith("Refunds")
    for _ in range(60):
        rows = 0
        if store.exists():
            with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
                (rows,) = connection.execute("select count(*) from evaluations").fetchone()
            connection.close()
        if rows >= RUNS:
            break
        time.sleep(0.5)
    counts = ask(base, "plain")["counts"]
    assert f"'evaluated': {RUNS}" in counts, (counts, log.read_text())
    assert "process" in counts
    assert rows >= RUNS
    assert "BlockingError" not in log.read_text()


def test_a_guard_keeps_an_invented_answer_back(server):
    base, _, _ = server
    assert ask(base, "guarded")["answer"] == "I do not know."
