"""Under lasting overload the memory stays flat and the counts add up."""

import asyncio
import gc
import os
import time
from pathlib import Path
from statistics import median

import pytest
from rag_chain import QUESTION, rag_chain

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import Monitor
from ragaliq.testing import ScriptedJudge

MINUTES = float(os.environ.get("RAGALIQ_SOAK_MINUTES", "20"))
RATE = 200
WARM_UP = 0.25
"""Share of the time in which caches and the allocator's arenas fill."""
ALLOWED = 8 * 2**20
STATM = Path("/proc/self/statm")


def resident():
    """Bytes of memory the process holds."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class SlowJudge(ScriptedJudge):
    """Half a second a run, eight at a time: a tenth of what comes. Remembers no calls."""

    async def _called(self, method, **arguments):
        await asyncio.sleep(0.25)


@pytest.mark.soak
@pytest.mark.skipif(not STATM.exists(), reason="reads the memory from /proc")
def test_memory_stays_flat_at_200_runs_a_second_with_a_slow_judge(report):
    monitor = Monitor(judge=SlowJudge(), evaluators=["faithfulness"], on_result=lambda result: None)
    handler, chain = RagaliqCallbackHandler(monitor), rag_chain()
    started, memory, runs = time.monotonic(), [], 0
    ends, next_look = started + 60 * MINUTES, started
    while (now := time.monotonic()) < ends:
        if now >= next_look:
            gc.collect()
            memory.append(resident())
            next_look = now + max(1.0, MINUTES)
        chain.invoke(f"{QUESTION} {runs}", {"callbacks": [handler]})
        runs += 1
        time.sleep(max(0.0, started + runs / RATE - time.monotonic()))
    rate = runs / (time.monotonic() - started)

    stats = monitor.stats()
    monitor.close(5.0)
    kept = memory[int(len(memory) * WARM_UP) :]
    third = len(kept) // 3
    grown = median(kept[-third:]) - median(kept[:third])
    report(
        [
            f"{runs} runs in {MINUTES:g} minutes, {rate:.0f} a second: {stats.outcomes}",
            f"memory in MiB: {[size // 2**20 for size in memory]}; grown by {grown / 2**20:.1f}",
        ]
    )
    assert stats.started == runs == sum(stats.outcomes.values()) + stats.pending
    assert stats.outcomes["queue_full"] > runs / 2
    assert handler.open_runs == handler.errors == 0
    assert grown < ALLOWED
