"""`ragaliq collect` as a process: killed, stopped, with slow senders, forwarding, enqueueing."""

import gzip
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from collector_process import asked, collector, counts, wait_until
from otlp import protobuf
from recorded_spans import recorded, request_with_a_chain

from free_ports import free_port


def stored(path):
    if not path.exists():
        return []
    with sqlite3.connect(path) as database:
        try:
            rows = database.execute("SELECT run_id FROM evaluations").fetchall()
        except sqlite3.OperationalError:
            return []
    return [row[0].partition("-")[0] for row in rows]


def traces(count):
    made = [recorded(request_with_a_chain) for _ in range(count)]
    return {f"{spans[0].context.trace_id:032x}": protobuf(spans) for spans in made}


@pytest.mark.slow
def test_what_was_answered_with_200_is_scored_although_the_process_is_killed(tmp_path):
    store, port = tmp_path / "evaluations.db", free_port()
    options = ("--sink", f"sqlite:///{store}", "--spool", tmp_path / "spool", "--grace", "1")
    sent = traces(60)
    taken = set()
    for part in range(3):
        with collector(*options, port=port) as process:
            for trace_id, body in list(sent.items())[20 * part : 20 * part + 20]:
                if asked(port, body=body) == 200:
                    taken.add(trace_id)
            time.sleep(0.7 * part)
            process.send_signal(signal.SIGKILL)
            process.wait()
    with collector(*options, port=port):
        wait_until(lambda: set(stored(store)) >= taken)
    assert len(taken) == 60
    assert set(stored(store)) == taken


@pytest.mark.slow
def test_a_process_that_is_told_to_stop_ends_what_is_whole_and_then_itself(tmp_path):
    store, port = tmp_path / "evaluations.db", free_port()
    with collector("--sink", f"sqlite:///{store}", "--grace", "60", port=port) as process:
        sent = traces(10)
        assert {asked(port, body=body) for body in sent.values()} == {200}
        process.terminate()
        assert process.wait(30) == 0
    assert set(stored(store)) == set(sent)


@pytest.mark.slow
def test_slow_senders_hold_nobody_up(tmp_path):
    store, port = tmp_path / "evaluations.db", free_port()
    with collector("--sink", f"sqlite:///{store}", "--grace", "0.2", port=port):
        head = (
            b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"
            b"Content-Length: 100000\r\n\r\n"
        )
        slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        for each in slow:
            each.sendall(head)
        sent = traces(20)
        began = time.monotonic()
        for body in sent.values():
            slow[len(body) % 100].sendall(b"\n")
            assert asked(port, body=body) == 200
        assert time.monotonic() - began < 10
        wait_until(lambda: set(stored(store)) == set(sent))
        for each in slow:
            each.close()


@pytest.mark.slow
def test_results_are_forwarded_and_do_not_come_back(tmp_path):
    received = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            data = self.rfile.read(int(self.headers["Content-Length"]))
            is_packed = self.headers.get("Content-Encoding") == "gzip"
            received.append((self.path, gzip.decompress(data) if is_packed else data))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args):
            pass

    port = free_port()
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        forward = f"http://127.0.0.1:{server.server_port}"
        with collector("--forward", forward, "--grace", "0.2", port=port):
            (body,) = traces(1).values()
            assert asked(port, body=body) == 200
            wait_until(lambda: any(b"evaluation rag" in data for _, data in received))
            for path, data in received:  # as though the receiver sent everything on
                if path == "/v1/traces":
                    assert asked(port, body=data) == 200
            assert 'outcome="own"' in counts(port)
            assert 'ragaliq_runs_total{outcome="evaluated"} 1' in counts(port)
        server.shutdown()


def test_it_does_not_forward_to_itself(tmp_path):
    port = free_port()
    command = [sys.executable, "-m", "ragaliq.cli", "collect", "--listen", f"127.0.0.1:{port}"]
    done = subprocess.run(
        [*command, "--forward", f"http://localhost:{port}/"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "must not come back" in done.stderr


@pytest.mark.fleet
@pytest.mark.skipif(not shutil.which("redis-server"), reason="needs redis-server")
def test_with_a_broker_it_only_enqueues(tmp_path):
    import redis

    port, broker = free_port(), free_port()
    command = ["redis-server", "--port", str(broker), "--save", "", "--dir", str(tmp_path)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        client = redis.Redis(port=broker)
        address = f"redis://127.0.0.1:{broker}/0"
        with collector("--executor", address, "--grace", "0.2", port=port):
            (body,) = traces(1).values()
            assert asked(port, body=body) == 200
            wait_until(lambda: client.keys("*"))
            (name,) = [key for key in client.keys("*") if client.type(key) == b"stream"]
            ((_, held),) = client.xrange(name)
            assert b"How long do refunds take?" in b"".join(held.values())
            assert 'outcome="enqueued"' in counts(port)
    finally:
        server.kill()
        server.wait()
