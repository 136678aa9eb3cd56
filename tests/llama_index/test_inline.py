"""Inline mode behind the span handler."""

from __future__ import annotations

import asyncio

import pytest

from llama_index.evaluation.ragaliq import attach
from ragaliq import Monitor
from ragaliq.testing import ScriptedJudge

QUESTION = "How long do refunds take?"


@pytest.fixture
def inline():
    monitor = Monitor(judge=ScriptedJudge(), mode="inline")
    attach(monitor)
    yield monitor
    monitor.close(1.0)


def test_the_result_is_there_when_the_engine_returns(inline, engine):
    engine().query(QUESTION)
    assert inline.last_result.case.query == QUESTION
    engine(streaming=True).query("streamed").get_response()
    assert inline.last_result.case.query == "streamed"


def test_of_an_asynchronous_query_it_can_be_awaited(inline, engine):
    async def request(question):
        await engine().aquery(question)
        return (await inline.result()).case.query

    async def requests():
        return await asyncio.gather(*map(request, "abc"))

    assert asyncio.run(requests()) == ["a", "b", "c"]
