"""A process of its own that writes records until it is done or killed; run by the tests.

Arguments: the store, the writer's number, the number of records. Prints a line for each batch that
is stored for certain.
"""

import asyncio
import sys
import time

from ragaliq import Evaluation, EvaluationResult, RAGTestCase, RunInfo, SinkError
from ragaliq.records import evaluation_record
from ragaliq.records.store import SQLiteStore
from ragaliq.telemetry.content import ContentPolicy


def record(writer, number):
    result = EvaluationResult(evaluator_name="faithfulness", score=0.5, passed=False, judge="j")
    run = RunInfo(run_id=f"{writer}-{number}", ended_at=1.0)
    case = RAGTestCase(query="q", response="r", run=run)
    evaluation = Evaluation(case=case, results={"faithfulness": result})
    return evaluation_record(evaluation, content=ContentPolicy())


async def main(path, writer, total):
    store = SQLiteStore(path)
    for start in range(0, total, 5):
        batch = [record(writer, number) for number in range(start, start + 5)]
        deadline = time.monotonic() + 60
        while True:
            try:
                await store.write(batch)
                break
            except SinkError as error:
                if error.permanent or time.monotonic() > deadline:
                    raise
        sys.stdout.write(f"{start + 5}\n")
        sys.stdout.flush()
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
