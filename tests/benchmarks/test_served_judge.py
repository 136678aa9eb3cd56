"""Time of many cases with a served judge, against the time of its replies alone."""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import pytest
from served_judge import CLAIMS, SECONDS

from ragaliq import OpenAICompatibleJudge, RAGTestCase, evaluate

CASES, CONCURRENCY, CALLS = 200, 32, 2
ROUNDS = 5
MOST = 1.15
TEXT = "Refunds are paid within five working days, to the card that was used. " * 10


@pytest.fixture
def address():
    script = Path(__file__).with_name("served_judge.py")
    server = subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
    server.communicate("")


def seconds_of_replies_alone(address: str) -> float:
    """The same number of replies over bare connections: the limit, on this machine at this time."""
    host = urlsplit(address)
    body = json.dumps({"prompt": TEXT * 4}).encode()
    request = f"POST / HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body

    async def worker(cases):
        reader, writer = await asyncio.open_connection(host.hostname, host.port)
        for _ in cases:
            for _ in range(CALLS):
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.rpartition(b": ")[2]))
        writer.close()

    async def all_workers():
        cases = iter(range(CASES))
        await asyncio.gather(*(worker(cases) for _ in range(CONCURRENCY)))

    began = time.perf_counter()
    asyncio.run(all_workers())
    return time.perf_counter() - began


@pytest.mark.benchmark
def test_200_cases_with_a_served_judge_take_little_more_than_its_replies(address, report):
    cases = [
        RAGTestCase(
            query=f"How long do refunds take? ({number})",
            context=[f"{number} {part} {TEXT}" for part in range(4)],
            response=" ".join(CLAIMS),
        )
        for number in range(CASES)
    ]
    judge = OpenAICompatibleJudge(model="m", base_url=address, context_window=32_000)
    settings = {"judge": judge, "metrics": ["faithfulness"], "concurrency": CONCURRENCY}
    evaluate(cases[:1], **settings)  # finds the form of replies
    ratios, limits, used = [], [], []
    for _ in range(ROUNDS):
        limits.append(seconds_of_replies_alone(address))
        began, worked = time.perf_counter(), time.process_time()
        run = evaluate(cases, **settings)
        took, worked = time.perf_counter() - began, time.process_time() - worked
        assert [each.results["faithfulness"].score for each in run] == [1.0] * CASES
        ratios.append(took / limits[-1])
        used.append(1000 * worked / CASES)
    waits = CALLS * SECONDS * -(-CASES // CONCURRENCY)
    report(
        [
            f"{CASES} cases at {CONCURRENCY}, {CALLS} replies of {SECONDS:g} s each",
            f"to bare connections: {median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})",
            f"bare connections to the waits alone: {median(limits) / waits:.3f}",
            f"processor time: {median(used):.2f} ms a case",
        ]
    )
    assert min(ratios) <= MOST  # other work on the machine only adds to it
