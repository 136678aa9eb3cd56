"""One process of a fleet: monitors with more to judge than their limits let through.

python limited_process.py '{"url": ..., "minute": 60, "minutes": 5, ...}'; writes a line for a call.
"""

from __future__ import annotations

import asyncio
import functools
import json
import random
import sys
import time
from pathlib import Path
from unittest.mock import Mock

from ragaliq import Budget, JudgeUsage, Monitor, RAGTestCase, RateLimits
from ragaliq.scoring.limits import protection
from ragaliq.scoring.limits.budget import BudgetLedger
from ragaliq.scoring.limits.rate_limits import RateLimiter
from ragaliq.testing import ScriptedJudge

CASE = RAGTestCase(query="q", context=["c"], response="r")
CALLS_AT_ONCE = 4


class Recording(ScriptedJudge):
    """Notes when it was asked and what that cost; costs differ by a half up or down."""

    def __init__(self, what, lines):
        super().__init__()
        self._what, self._lines = what, lines
        self._random = random.Random()

    async def evaluate_relevance(self, query, response):
        asked, tokens = time.time(), self._random.randint(500, 1500)
        usage = JudgeUsage(requests=1, input_tokens=tokens, cost_usd=tokens / 1e6)
        self._lines.append([self._what, asked, tokens])
        await asyncio.sleep(self._random.uniform(0.02, 0.1))
        reply = await super().evaluate_relevance(query, response)
        return reply.model_copy(update={"usage": usage})


def monitor(what, lines, **limits):
    return Monitor(
        judge=Recording(what, lines),
        metrics=["relevance"],
        executor="thread",
        concurrency=CALLS_AT_ONCE,
        deadline=1e6,
        **limits,
    )


def main(options):
    shared = {"storage": options["url"], "local_share": options["share"]}
    quick = [
        Mock(side_effect=functools.partial(RateLimiter, minute=options["minute"], pause=0.1)),
        Mock(side_effect=functools.partial(BudgetLedger, pause=0.1)),
    ]
    protection.RateLimiter, protection.BudgetLedger = quick
    lines = []
    limits = {
        "requests": {"judge_limits": RateLimits(**shared, requests_per_minute=options["requests"])},
        "tokens": {
            "judge_limits": RateLimits(**shared, tokens_per_minute=options["tokens"], name="tokens")
        },
        "usd": {"budget": Budget(**shared, usd_per_hour=options["usd"])},
    }
    monitors = {what: monitor(what, lines, **limit) for what, limit in limits.items()}
    assert [each.call_count for each in quick] == [2, 1], "the limits are not those of this test"
    until = time.monotonic() + options["minutes"] * options["minute"]
    while time.monotonic() < until:
        for each in monitors.values():
            for _ in range(CALLS_AT_ONCE * 2 - each.stats().queued):
                each.submit(CASE)
        time.sleep(0.01)
    states = {what: each.stats().limits_storage for what, each in monitors.items()}
    for each in monitors.values():
        each.close(0.0)
    Path(options["out"]).write_text(json.dumps({"calls": lines, "states": states}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
