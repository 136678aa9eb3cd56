"""Four processes that have more to judge than their common limits let through."""

from __future__ import annotations

import asyncio
import bisect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

PROCESSES = 4
PROGRAM = Path(__file__).parent / "limited_process.py"


@dataclass(frozen=True)
class Calls:
    """What was asked of a judge in one or more processes: when, and how much, in order."""

    times: list[float]
    amounts: list[float]

    def within(self, seconds: float) -> float:
        """What was used in the first so many seconds."""
        end = bisect.bisect_left(self.times, self.times[0] + seconds)
        return sum(self.amounts[:end])

    def most_within(self, seconds: float) -> float:
        """The most that was used in any so many seconds."""
        sums = [0.0, *accumulate(self.amounts)]
        ends = [bisect.bisect_left(self.times, at + seconds) for at in self.times]
        return max(sums[end] - sums[start] for start, end in enumerate(ends))


def run_fleet(
    folder: Path, *, during: Callable[[], None] = lambda: None, **options: object
) -> list[dict[str, object]]:
    """Run the processes to their end, and read what they wrote; `during` is called meanwhile."""
    outs = [folder / f"process-{number}.json" for number in range(PROCESSES)]
    running = [
        subprocess.Popen(
            [
                sys.executable,
                str(PROGRAM),
                json.dumps({**options, "share": 1 / PROCESSES, "out": str(out)}),
            ],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        for out in outs
    ]
    try:
        during()
        codes = [process.wait() for process in running]
    finally:
        for process in running:
            process.kill()
    assert codes == [0] * PROCESSES
    return [json.loads(out.read_text()) for out in outs]


def calls_of(what: str, *processes: dict) -> Calls:
    """The calls some processes made against one limit."""
    weight = {"requests": lambda _: 1.0, "tokens": float, "usd": lambda tokens: tokens / 1e6}[what]
    lines = sorted(
        (at, weight(tokens))
        for process in processes
        for kind, at, tokens in process["calls"]
        if kind == what
    )
    return Calls([at for at, _ in lines], [amount for _, amount in lines])


async def becomes(look: Callable[[], object], wanted: object) -> None:
    """Wait, ten seconds at most, until what is looked at is as wanted."""
    for _ in range(1000):
        if look() == wanted:
            return
        await asyncio.sleep(0.01)
    assert look() == wanted
