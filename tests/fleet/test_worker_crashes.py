"""Workers die and the broker restarts: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from worker_fleet import eventually, offer


@pytest.mark.timeout(240)
def test_with_workers_killed_at_random_and_the_broker_restarted_each_job_is_in_the_store_once(
    fleet, handing_over
):
    jobs = 2000
    monitor = handing_over(max_queue=2 * jobs)
    chance = random.Random(8)
    for _ in range(2):
        fleet.start("--concurrency", "8", FLEET_DELAY="0.02")
    for number in range(jobs):
        assert offer(monitor, number)

    for done in (jobs // 8, jobs // 4, jobs // 2, 5 * jobs // 8, 3 * jobs // 4):
        assert eventually(lambda done=done: len(fleet.evaluated()) >= done, within=60.0)
        if done == jobs // 2:
            fleet.server.kill()
            fleet.server.start()
        fleet.kill(chance.choice(fleet.workers))
        fleet.start("--concurrency", "8", FLEET_DELAY="0.02")

    assert eventually(lambda: len(fleet.evaluated()) >= jobs, within=90.0)
    counted = Counter(fleet.evaluated())
    assert counted == {f"case-{number}": 1 for number in range(jobs)}
    assert monitor.flush(10.0)
    stats = monitor.stats()
    assert stats.outcomes == {"handed_over": jobs}
    assert stats.started == jobs
    # What a dead worker had acknowledges itself once another one has been given it.
    assert eventually(lambda: not fleet.waiting() and not fleet.unacknowledged())
    assert fleet.waiting("ragaliq.set_aside") == 0
