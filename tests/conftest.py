"""What holds for every test."""

from __future__ import annotations

import asyncio
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
