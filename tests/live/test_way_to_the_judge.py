"""A case's way from the worker to its judge is short."""

import asyncio
import sys
from pathlib import Path

import ragaliq
from ragaliq.live.runtime import RUNTIME
from ragaliq.testing import ScriptedJudge

OURS = str(Path(ragaliq.__file__).parent)


class Looking(ScriptedJudge):
    """Counts the calls of ours that wait for it, in all tasks but those of before."""

    def __init__(self, before):
        super().__init__()
        self.ways, self.before = {}, before

    async def extract_statements(self, query, response):
        self.look("extract_statements")
        return await super().extract_statements(query, response)

    async def verify_claims(self, claims, context):
        self.look("verify_claims")
        return await super().verify_claims(claims, context)

    def look(self, method):
        way, frame = [method], sys._getframe(2)
        while frame is not None:
            way.append(frame)
            frame = frame.f_back
        names = [f.f_code.co_qualname for f in way[1:] if f.f_code.co_filename.startswith(OURS)]
        # A claim check is a task of its own, which the run's task waits for.
        for task in asyncio.all_tasks() - {asyncio.current_task(), *self.before}:
            awaited = task.get_coro()
            while awaited is not None and hasattr(awaited, "cr_await"):
                if awaited.cr_code.co_filename.startswith(OURS):
                    names.append(awaited.__qualname__)
                awaited = awaited.cr_await
        self.ways[method] = [name for name in names if name != "_run_loop"]


def test_at_most_ten_frames_stand_between_the_worker_and_the_judge(monitor_of, case):
    # A process that judged for other tests is listened to for a while.
    loop = RUNTIME.thread.running
    judge = Looking(asyncio.all_tasks(loop) if loop is not None else ())
    monitor = monitor_of(judge=judge, metrics=["faithfulness"])
    assert monitor.submit(case)
    assert monitor.flush(10.0)
    assert set(judge.ways) == {"extract_statements", "verify_claims"}
    for way in judge.ways.values():
        assert "Monitor.judge_run" in way
        assert len(way) <= 10, way
