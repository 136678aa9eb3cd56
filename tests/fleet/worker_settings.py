"""What the workers of these tests do; the environment says how. Named by `--app`."""

from __future__ import annotations

import asyncio
import os
import signal

from ragaliq import JudgeAPIError
from ragaliq.testing import ScriptedJudge
from ragaliq.worker import WorkerSettings


class FleetJudge(ScriptedJudge):
    """Takes its time, notes what it is asked, and does what a question tells it to do."""

    async def extract_statements(self, query, response):
        await asyncio.sleep(float(os.environ.get("FLEET_DELAY", "0")))
        with open(os.environ["FLEET_ASKED"], "a") as asked:  # noqa: ASYNC230, PTH123
            asked.write(f"{query.split()[0]}\n")
        if "poison" in query:
            os.kill(os.getpid(), signal.SIGKILL)
        if "outage" in query:
            raise JudgeAPIError("down")
        return await super().extract_statements(query, response)


def settings():
    return WorkerSettings(
        judge=FleetJudge(),
        metrics=["faithfulness"],
        sinks=[f"sqlite:///{os.environ['FLEET_STORE']}"],
        backoff=0.05,
        max_deliveries=int(os.environ.get("FLEET_MAX_DELIVERIES", "20")),
        deadline=float(os.environ.get("FLEET_DEADLINE", "2")),
        time_limit=float(os.environ.get("FLEET_TIME_LIMIT", "3")),
        breaker=None,
    )
