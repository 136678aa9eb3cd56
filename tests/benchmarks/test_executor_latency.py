"""What judging every answer does to the application's latency, in the thread and in a process.

An asynchronous service answers requests that arrive at a fixed rate, whether or not the last one
is done; a request's latency counts from when it was due, so that a stalled event loop is seen in
all of those it delays. The variants take turns in blocks of a few seconds.
"""

import asyncio
import time
from pathlib import Path
from statistics import median, quantiles

import pytest
from opentelemetry.sdk.trace import TracerProvider
from rag_chain import ConstantRetriever, rag_chain

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import Monitor, TelemetryOptions
from ragaliq.live.runtime import RUNTIME

PER_SECOND, BLOCK, ROUNDS = 25, 4.0, 6
RETRIEVAL, GENERATION = 0.01, 0.05  # seconds

PLACES = "Leeds York Hull Bath Ripon Truro Wells Derby".split()
TEXTS = [
    " ".join(
        f"The {place} warehouse, open since {year}, ships {40 * year} parcels a day, most to"
        " customers who ordered before noon."
        for year, place in enumerate(PLACES, start=first)
    )
    for first in (1990, 1993, 1996, 1999)
]
ANSWER = (
    "The Leeds warehouse is open since 1990. It ships to customers who ordered before noon. "
    "The York warehouse is the largest of all. Returns are free for thirty days. "
    "Hull ships 14 parcels a day."
)


def service():
    retriever = ConstantRetriever(texts=TEXTS, seconds=RETRIEVAL)
    return rag_chain(GENERATION, [ANSWER], retriever)


class Variant:
    """A way to run the service, and what was measured of it."""

    def __init__(self, executor):
        self.p50, self.p99, self.worker = [], [], []
        self.monitor, self.callbacks = None, []
        if executor is not None:
            telemetry = TelemetryOptions(tracer_provider=TracerProvider())
            self.monitor = Monitor(judge="local", executor=executor, telemetry=telemetry)
            self.callbacks = [RagaliqCallbackHandler(self.monitor)]

    def block(self, chain):
        before, started = self._worker_seconds(), self._runs()
        latencies = asyncio.run(requests(chain, self.callbacks))
        if self.monitor is not None:
            assert self.monitor.flush(60)
            spent = self._worker_seconds() - before
            self.worker.append(spent / (self._runs() - started))
        cuts = quantiles(latencies, n=100)
        self.p50.append(cuts[49])
        self.p99.append(cuts[98])

    def _runs(self):
        return 0 if self.monitor is None else self.monitor.stats().started

    def _worker_seconds(self):
        """Processor time of the worker's thread: nearly all of it with the interpreter's lock."""
        thread = self.monitor and RUNTIME.thread._thread
        return time.clock_gettime(time.pthread_getcpuclockid(thread.ident)) if thread else 0.0


async def requests(chain, callbacks):
    """Seconds each request took from when it was due."""
    loop = asyncio.get_running_loop()
    start, latencies = loop.time(), []

    async def request(due):
        await chain.ainvoke("Where do parcels come from?", {"callbacks": callbacks})
        latencies.append(loop.time() - due)

    async with asyncio.TaskGroup() as group:
        for number in range(int(PER_SECOND * BLOCK)):
            due = start + number / PER_SECOND
            await asyncio.sleep(due - loop.time())
            group.create_task(request(due))
    return latencies


def row(name, variant):
    p50, p99 = (1e3 * median(each) for each in (variant.p50, variant.p99))
    spread = f"[{1e3 * min(variant.p99):.0f} .. {1e3 * max(variant.p99):.0f}]"
    worker = f"{1e3 * median(variant.worker):8.2f}" if variant.worker else ""
    return f"  {name:22}{p50:9.1f}{p99:9.1f}   {spread:14}{worker}"


def memory(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) // 1024


@pytest.mark.benchmark
def test_in_a_process_judging_leaves_the_application_its_latency(report):
    chain = service()
    variants = {
        "no monitor": Variant(None),
        "no monitor, again": Variant(None),
        "executor='thread'": Variant("thread"),
        "executor='process'": Variant("process"),
    }
    for variant in variants.values():
        variant.block(chain)  # the first starts what starts on first use
        variant.p50.clear()
        variant.p99.clear()
        variant.worker.clear()
    for number in range(ROUNDS):
        order = list(variants.values())
        for variant in order[number % 4 :] + order[: number % 4]:
            variant.block(chain)

    thread, process = variants["executor='thread'"], variants["executor='process'"]
    child = process.monitor._scorer._processes[0]._child
    report(
        [
            f"{PER_SECOND} requests a second, every answer judged; ms, medians of {ROUNDS} blocks",
            f"  {'':22}{'p50':>9}{'p99':>9}   {'p99, all':14}{'worker, a run':>8}",
            *(row(*item) for item in variants.items()),
            f"  the process that judges holds {memory(child.pid)} MiB",
        ]
    )
    for variant in (thread, process):
        stats = variant.monitor.stats()
        assert set(stats.outcomes) == {"evaluated"}
        assert set(stats.evaluations["faithfulness"]) == {"scored"}
        variant.monitor.close(5)
    assert process.monitor.stats().restarts == 0
    # Measured: 0.55 to 0.6, much of it for waking up.
    assert median(process.worker) < 0.8 * median(thread.worker)
    assert median(process.p99) < median(thread.p99)
