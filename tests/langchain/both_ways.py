"""Guards, and chains that are called synchronously and asynchronously."""

import asyncio

import pytest
from rag_parts import FALLBACK

from langchain_ragaliq import RagaliqGuard
from ragaliq.testing import ScriptedJudge


@pytest.fixture
def guard_of():
    """Guards around chains, whose answer is `FALLBACK` in place of a rejected one."""
    made = []

    def build(chain=None, **options):
        options = {"judge": ScriptedJudge(), "fallback": FALLBACK, **options}
        made.append(RagaliqGuard(chain, **options))
        return made[-1]

    yield build
    for guard in made:
        guard.guard.monitor.close(1.0)


@pytest.fixture(params=["sync", "async"])
def mode(request):
    return request.param


@pytest.fixture
def invoke(mode):
    """Call a chain with `invoke` or `ainvoke`."""

    def sync_call(chain, value, config=None, **kwargs):
        return chain.invoke(value, config, **kwargs)

    def async_call(chain, value, config=None, **kwargs):
        return asyncio.run(chain.ainvoke(value, config, **kwargs))

    return sync_call if mode == "sync" else async_call


@pytest.fixture
def stream(mode):
    """Consume a chain's stream to its end."""

    def sync_stream(chain, value, config=None, **kwargs):
        return list(chain.stream(value, config, **kwargs))

    def async_stream(chain, value, config=None, **kwargs):
        async def consume():
            return [chunk async for chunk in chain.astream(value, config, **kwargs)]

        return asyncio.run(consume())

    return sync_stream if mode == "sync" else async_stream
