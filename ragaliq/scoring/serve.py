"""Main program of the child process: it reads cases from its standard input and answers there.

The process shares nothing with the application: no module, no open file, no thread.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import sys
import threading
from contextlib import suppress

from ragaliq._version import __version__
from ragaliq.capture import RunLog
from ragaliq.core.results import EvaluationResult
from ragaliq.core.test_case import RAGTestCase
from ragaliq.evaluators.case import evaluate_case
from ragaliq.evaluators.evaluator import Evaluator
from ragaliq.evaluators.registry import resolve_evaluators
from ragaliq.judges.base import LLMJudge
from ragaliq.scoring.execution import (
    LOWEST_PRIORITY,
    Channel,
    Message,
    read_evaluator,
    read_judge,
)

_LONGEST_WAIT = 0.05  # seconds a reply waits for others
_FIRST_CASE = RAGTestCase(id="warm-up", query="What?", context=["One."], response="One.")


def main() -> None:
    """Serve until the parent hangs up."""
    # Ctrl-C is for the application, which decides about the remaining runs.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end = socket.socket(fileno=sys.stdin.fileno())
    threading.Thread(target=_exit_with_parent, args=(end.fileno(),), daemon=True).start()
    asyncio.run(_serve(Channel(end)))


def _exit_with_parent(end: int) -> None:
    # In a thread: during a long case the event loop would not notice that the parent is gone.
    poll = select.poll()
    poll.register(end, 0)  # a hang-up is always reported
    poll.poll()
    os._exit(0)


async def _serve(channel: Channel) -> None:
    plan = await channel.receive()
    if plan is None:
        return
    os.nice(plan["niceness"])
    judge = read_judge(plan)
    evaluators: dict[str, Evaluator] = {}
    # Warm up lazy imports.
    await evaluate_case(_FIRST_CASE, resolve_evaluators(None, judge=judge), judge)
    if plan["niceness"] == LOWEST_PRIORITY and hasattr(os, "SCHED_IDLE"):  # Linux
        # At any niceness, this process would keep a processor for the rest of its time slice, some
        # milliseconds, while the application waits for it.
        with suppress(OSError):  # a container may forbid it
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    channel.send({"ready": __version__})
    answering: set[asyncio.Task[Message]] = set()
    replies: list[Message] = []

    def send() -> None:
        if replies:
            channel.send(*replies)
            replies.clear()

    def answered(task: asyncio.Task[Message]) -> None:
        answering.discard(task)
        replies.append(task.result())
        # Several replies at once, since each makes the application wait for its interpreter; but
        # early enough for it to send more before this process is idle.
        if len(replies) >= len(answering):
            send()
        elif len(replies) == 1:
            asyncio.get_running_loop().call_later(_LONGEST_WAIT, send)

    while (job := await channel.receive()) is not None:
        for number, written in job.get("described", {}).items():
            evaluators[number] = read_evaluator(written)
        answer = asyncio.create_task(_answer(job, evaluators, judge))
        answering.add(answer)
        answer.add_done_callback(answered)


async def _answer(job: Message, evaluators: dict[str, Evaluator], judge: LLMJudge) -> Message:
    """Evaluate a case, which is built first if the job has a run."""
    built: Message = {}
    try:
        if "run" in job:
            case = RunLog.from_plain(job["run"]).to_case()
            built = {"built": case.model_dump(exclude_defaults=True)}
        else:
            case = RAGTestCase.model_validate(job["case"])
        chosen = [evaluators[number] for number in job["evaluators"]]
        results = await evaluate_case(case, chosen, judge, deadline=job["deadline"])
        return {"id": job["id"], "results": [_row(each) for each in results.values()]} | built
    except Exception as error:  # noqa: BLE001 - one case must not end the others
        # The message may quote the application's text: return only the type.
        return {"id": job["id"], "failed": type(error).__name__}


def _row(result: EvaluationResult) -> Message:
    row = result.model_dump()
    if row["raw_response"].get("claims") == [*row["claims"]]:
        row["raw_response"]["claims"] = [*row["claims"]]  # the same ones, written once
    return row
