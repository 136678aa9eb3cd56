"""Inline mode behind the callback handler."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from rag_parts import ANSWER, QUESTION, model, rag_chain


def test_the_result_is_there_when_the_chain_returns(new_watch):
    watch = new_watch(mode="inline")
    rag_chain().invoke(QUESTION, watch.config)
    assert watch.monitor.last_result.case.response == ANSWER
    list(rag_chain().stream(QUESTION, watch.config))
    assert watch.stats.outcomes == {"evaluated": 2}


def test_of_an_asynchronous_chain_it_can_be_awaited(new_watch):
    watch = new_watch(mode="inline")

    async def request(number):
        chain = rag_chain(llm=model(f"Answer {number} is this."))
        run_id = uuid4()
        answer = await chain.ainvoke(QUESTION, {**watch.config, "run_id": run_id})
        latest = await watch.monitor.result()
        assert latest is await watch.monitor.result(str(run_id))
        return answer == latest.case.response

    async def requests():
        return await asyncio.gather(*map(request, range(10)))

    assert asyncio.run(requests()) == [True] * 10
