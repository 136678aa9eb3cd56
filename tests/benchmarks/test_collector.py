"""`ragaliq collect` on one core: 2,000 spans a second, a twentieth of the traces judged."""

import gzip
import math
import os
import shutil
import signal
import threading
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
from collector_process import asked, collector, counts
from otlp import protobuf
from recorded_spans import recorded

from free_ports import free_port

MINUTES = float(os.environ.get("RAGALIQ_SOAK_MINUTES", "20"))
RATE, BATCH, SAMPLED = 2_000, 500, 0.05
ALLOWED = 8 * 2**20
STALLED = 30
"""Seconds of the warm-up for which the judge is stopped.

A busy machine holds it up for less, and the memory of the longest queue so far is kept.
"""
SIX = "six spans: a request, a chain, a search, a model, and two of HTTP clients"


def six_spans(app):
    with app.request(), app.span("rag", kind="CHAIN", asked="How long do refunds take?") as root:
        with app.span("POST embeddings"):
            pass
        app.retrieve([f"Refunds take five days. {'The shop opens at nine. ' * 10}"] * 2)
        with app.span("POST chat"):
            pass
        app.answer("Refunds take five days.")
        app.say(root, output="Refunds take five days.")


def batches():
    """Batches without end, of traces that are all different."""
    spans = recorded(six_spans)
    assert len(spans) == 6, SIX
    body = protobuf(spans)
    trace_id = spans[0].context.trace_id.to_bytes(16)
    while True:
        made = b"".join(body.replace(trace_id, os.urandom(16)) for _ in range(BATCH // 6))
        yield gzip.compress(made, 1), 6 * (BATCH // 6)


def started_by(process):
    """The processes that a process started, from any of its threads."""
    found = []
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that has just ended
            found += map(int, (task / "children").read_text().split())
    return found


def resident(process):
    """Bytes of memory of a process and of those that it started."""
    pids = [process.pid, *started_by(process)]
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return pages * os.sysconf("SC_PAGE_SIZE")


def stall_judge(process):
    """Stop the judge's process for a while, so that the queue has been long once."""
    [judge] = started_by(process)
    os.kill(judge, signal.SIGSTOP)
    threading.Timer(STALLED, os.kill, (judge, signal.SIGCONT)).start()


def busy(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sent_for(seconds, port, process, report, stall_at):
    made, codes, sent, memory = batches(), {}, 0, []
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < seconds:
        if sent > elapsed * RATE:
            time.sleep(0.01)
            continue
        body, count = next(made)
        code = posted(port, body)
        codes[code] = codes.get(code, 0) + 1
        sent += count
        memory.append(resident(process))
        if elapsed > stall_at:
            stall_judge(process)
            stall_at = math.inf
    report([f"{sent / elapsed:,.0f} spans a second, answers {codes}, CPU {busy(process):.0f} s"])
    return codes, sent, memory


def posted(port, body):
    headers = {"content-type": "application/x-protobuf", "content-encoding": "gzip"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/traces", body, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.status


def run(seconds, tmp_path, report, stall_at=math.inf):
    port = free_port()
    options = ("--judge", "local", "--sample-rate", SAMPLED, "--spool", tmp_path / "spool")
    core = {min(os.sched_getaffinity(0))}
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, core)  # what is started now keeps to it, and so does what it starts
    with collector(*options, "--sink", f"sqlite:///{tmp_path / 'e.db'}", port=port) as process:
        os.sched_setaffinity(0, everywhere)
        codes, sent, memory = sent_for(seconds, port, process, report, stall_at)
        deadline = time.monotonic() + 60
        while "ragaliq_collect_traces 0" not in counts(port) and time.monotonic() < deadline:
            time.sleep(0.5)
        time.sleep(2)
        told = counts(port)
        assert asked(port, "/healthz") == 200
    values = dict(line.rsplit(" ", 1) for line in told.splitlines() if line[0] != "#")
    outcomes = {
        name.partition('"')[2].rstrip('"}'): int(value)
        for name, value in values.items()
        if name.startswith("ragaliq_runs_total")
    }
    kept = values['ragaliq_collect_spans_total{outcome="kept"}']
    report([f"{outcomes}, {kept} spans kept"])
    return codes, sent, memory, outcomes


@pytest.mark.benchmark
@pytest.mark.skipif(not shutil.which("taskset"), reason="needs Linux")
def test_2_000_spans_a_second_on_one_core(tmp_path, report):
    seconds = float(os.environ.get("RAGALIQ_COLLECT_SECONDS", "120"))
    codes, sent, _, outcomes = run(seconds, tmp_path, report)
    assert set(codes) == {200}
    assert sent >= 0.97 * RATE * seconds
    assert sum(outcomes.values()) == sent / 6
    assert outcomes["evaluated"] == pytest.approx(SAMPLED * sent / 6, rel=0.15)
    assert set(outcomes) == {"evaluated", "sampled_out"}


@pytest.mark.soak
@pytest.mark.skipif(not shutil.which("taskset"), reason="needs Linux")
def test_memory_of_a_collector_stays_flat(tmp_path, report):
    from test_soak import WARM_UP, growth

    seconds = 60 * MINUTES
    codes, _, memory, _ = run(seconds, tmp_path, report, stall_at=WARM_UP / 2 * seconds - STALLED)
    grown = growth(memory)
    report([f"memory {memory[-1] / 2**20:.0f} MB, grown by {grown / 2**20:.1f} MB"])
    assert set(codes) == {200}
    assert grown < ALLOWED
