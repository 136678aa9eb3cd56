"""Run by `test_event_loops.py`: a monitor on a loop of a process in which blocking calls raise."""

import asyncio
import json
import sys
import traceback

import blockbuster.blockbuster
from blockbuster import BlockBuster

from ragaliq import Monitor, RAGTestCase, evaluate_async

_CONTEXT = "Refunds are paid within five days."
# What langgraph-api 0.16 lets pass.
_ALLOWED = (
    "os.stat os.listdir os.remove io.BufferedReader.read io.BufferedWriter.write "
    "io.TextIOWrapper.read io.TextIOWrapper.write threading.Lock.acquire"
).split()
_seen: list[str] = []


def activate(kind: str) -> None:
    init = blockbuster.blockbuster.BlockingError.__init__

    def noted(self: Exception, func: str) -> None:
        frames = [f for f in traceback.extract_stack() if "/ragaliq/" in f.filename]
        _seen.append(f"{func} in {frames[-1].name if frames else '?'}")
        init(self, func)

    blockbuster.blockbuster.BlockingError.__init__ = noted
    buster = BlockBuster(excluded_modules=[])
    if kind == "langgraph":
        paths = [name for name in buster.functions if name.startswith("os.path.")]
        for name in (*_ALLOWED, *paths):
            buster.functions.pop(name, None)
    buster.activate()


def store(result: object) -> None:
    with open("results.txt", "a", encoding="utf-8") as file:  # noqa: PTH123 - a user's function
        file.write(f"{result!r}\n")


async def live(executor: str) -> dict[str, object]:
    monitor = Monitor(executor=executor, sinks=["sqlite:///kept/live.db"], on_result=store)
    for number in range(5):
        run = monitor.begin(f"run-{number}", pipeline="p")
        run.submit(RAGTestCase(query="When?", context=[_CONTEXT], response=_CONTEXT))
    flushed = await monitor.aflush(60.0)
    case = RAGTestCase(query="When?", context=[_CONTEXT], response=_CONTEXT)
    awaited = await monitor.aevaluate(case, timeout=60.0)
    stats = monitor.stats()
    await asyncio.to_thread(monitor.close)
    offline = await evaluate_async([case], sinks=["sqlite:///kept/offline.db"])
    return {
        "flushed": flushed,
        "outcomes": dict(stats.outcomes),
        "executor": stats.executor,
        "callback_errors": stats.callback_errors,
        "scores": [awaited.results["faithfulness"].score, offline[0].results["faithfulness"].score],
        "written": [monitor.stats().sinks["sqlite"].written, offline.sinks["sqlite"].written],
        "blocking": _seen,
    }


if __name__ == "__main__":
    activate(sys.argv[2])
    sys.stdout.write(json.dumps(asyncio.run(live(sys.argv[1]))))
