"""Nothing of ours grows with the number of runs, however they end.

After a few runs of a kind, everything that can be reached from the handler and its monitor is
walked and what its containers hold is counted; a thousand runs later it must be as much.
"""

import asyncio
import gc
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

import pytest
from held_back import HeldBack
from langchain_core.runnables import RunnableLambda
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from rag_chain import rag_chain
from test_llama_index_overhead import ConstantRetriever

from langchain_ragaliq import RagaliqCallbackHandler
from llama_index.evaluation.ragaliq import attach, detach
from ragaliq.capture.registry import _PastSteps

RUNS = 1000
QUESTION = "How long do refunds take?"
NOT_STATE = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)


def held_by(*roots):
    """How many items the containers reachable from these objects of ours hold."""
    seen, waiting, items = set(), list(roots), 0
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, NOT_STATE):
            continue
        seen.add(id(each))
        # What is over is remembered up to a fixed number, which is reached in its own time.
        if isinstance(each, _PastSteps | asyncio.AbstractEventLoop):
            continue
        if hasattr(each, "__len__") and not isinstance(each, str | bytes):
            items += len(each)
        is_ours = type(each).__module__.split(".")[0] in ("ragaliq", "langchain_ragaliq")
        is_ours = is_ours or type(each).__module__.startswith("llama_index.evaluation.ragaliq")
        if is_ours or type(each).__module__ in ("builtins", "collections"):
            waiting += gc.get_referents(each)
    return items


class LangChain:
    """Runs of the usual chain."""

    def __init__(self, monitor):
        self.handler = RagaliqCallbackHandler(monitor)
        self.config = {"callbacks": [self.handler]}
        self.chain = rag_chain()
        self.called = asyncio.Event()
        self.hanging = RunnableLambda(lambda question: question) | RunnableLambda(
            lambda question: question, afunc=self._hang
        )

    async def _hang(self, question):
        self.called.set()
        await asyncio.Event().wait()

    async def completed(self):
        await self.chain.ainvoke(QUESTION, self.config)

    async def cancelled(self):
        await cancel(self.hanging.ainvoke(QUESTION, self.config), self.called)

    async def abandoned(self):
        next(self.chain.stream(QUESTION, self.config))

    def close(self):
        assert self.handler.errors == 0
        assert self.handler.open_runs == 0


class Hanging(ConstantRetriever):
    called = asyncio.Event()

    async def _aretrieve(self, query_bundle):
        self.called.set()
        await asyncio.Event().wait()


class LlamaIndex:
    """Runs of the usual query engine."""

    def __init__(self, monitor):
        self.handler = attach(monitor)
        llm = MockLLM(max_tokens=8)
        self.engine = RetrieverQueryEngine.from_args(ConstantRetriever(), llm=llm)
        self.streaming = RetrieverQueryEngine.from_args(
            ConstantRetriever(), llm=llm, streaming=True
        )
        self.hanging = RetrieverQueryEngine.from_args(Hanging(), llm=llm)

    async def completed(self):
        await self.engine.aquery(QUESTION)

    async def cancelled(self):
        await cancel(self.hanging.aquery(QUESTION), Hanging.called)

    async def abandoned(self):
        next(self.streaming.query(QUESTION).response_gen)

    def close(self):
        assert self.handler.errors == 0
        assert self.handler.runs_in_progress == 0
        detach()


async def cancel(run, called):
    called.clear()
    task = asyncio.create_task(run)
    await called.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.benchmark
@pytest.mark.parametrize("framework", [LangChain, LlamaIndex])
@pytest.mark.parametrize("ending", ["completed", "cancelled", "abandoned"])
async def test_nothing_grows_over_a_thousand_runs(framework, ending, report):
    # Unlike other fakes its judge keeps no record of what it was asked.
    held = HeldBack(1.0)
    held.judge.let.set()
    monitor = held.monitor
    app = framework(monitor)

    async def run(times):
        for _ in range(times):
            await getattr(app, ending)()
        gc.collect()
        assert await monitor.aflush(60)
        return held_by(app.handler, monitor)

    before = await run(20)
    after = await run(RUNS)
    stats = monitor.stats()
    report([f"{framework.__name__}, {RUNS} {ending}: {before} items held before, {after} after"])
    app.close()
    monitor.close(5)
    assert stats.started == RUNS + 20
    assert stats.pending == 0
    expected = {"completed": "evaluated"}.get(ending, "incomplete_run")
    assert stats.outcomes == {expected: RUNS + 20}
    assert after <= before
