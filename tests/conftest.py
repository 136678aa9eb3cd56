"""What holds for every test."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os

import pytest
from hypothesis import HealthCheck, settings

# No deadlines: how long an example takes says more about the machine than about the code, and
# speed is what the benchmarks are for. In CI the examples are the same in every run.
settings.register_profile(
    "ragaliq",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("ragaliq")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep the garbage collector off what stays until the end anyhow.

    That is the frameworks and the tests, a million objects, which each collection would go
    through anew, and many tests collect. What a test makes is collected as ever.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture
def loop_of_synchronous_calls(request):
    """LlamaIndex's synchronous calls make an event loop where there is none, and leave it open."""
    if inspect.iscoroutinefunction(request.function):
        yield
        return
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()
