"""What one run held, reported by many threads at once."""

import sys
import threading

import pytest

from ragaliq import Passage
from ragaliq.capture import RunLog

THREADS, STEPS = 8, 150


@pytest.fixture
def hasty():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_steps_that_end_at_the_same_time_lose_nothing(hasty):
    log = RunLog(0)

    def run_steps(thread):
        for number in range(STEPS):
            step = 1 + thread + THREADS * number
            log.began(step, 0)
            log.retrieving(step)
            log.retrieved(step, [Passage(f"Found by {step}.")])
        assert log.find("?", "!").passages

    threads = [threading.Thread(target=run_steps, args=[n]) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    found = {passage.text for passage in log.find("?", "!").passages}
    assert found == {f"Found by {1 + n}." for n in range(THREADS * STEPS)}


def test_texts_that_many_steps_share_are_weighed_once():
    log = RunLog(0)
    passage = Passage("x" * 1_000)
    for step in range(1, 50):
        log.given(step, {"documents": [passage]})
    assert log.size == 1_000
