"""The documents of one run, reported by many threads at once."""

import sys
import threading

import pytest
from rag_parts import documents

from langchain_ragaliq.sources import Sources

THREADS, STEPS = 8, 150


@pytest.fixture
def hasty():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_steps_that_end_at_the_same_time_lose_nothing(hasty):
    root = 0
    parents = {root: None}
    sources = Sources(parents)

    def run_steps(thread):
        for number in range(STEPS):
            step = 1 + thread + THREADS * number
            parents[step] = root
            sources.given(step, {"question": "?"})
            sources.retrieved(step, documents([f"Found by {step}."]))
            assert list(sources)

    threads = [threading.Thread(target=run_steps, args=[n]) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    found = {passage.text for passage in sources}
    assert found == {f"Found by {1 + n}." for n in range(THREADS * STEPS)}
