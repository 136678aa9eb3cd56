"""A broker without memory left refuses, keeps what it has, and goes on when there is room."""

from __future__ import annotations

import redis
from worker_fleet import eventually, offer


def test_a_full_broker_keeps_what_it_has_and_takes_more_when_there_is_room(
    fleet, redis_server, handing_over
):
    monitor = handing_over(max_queue=5)
    assert offer(monitor, 0)
    assert monitor.flush(10.0)
    with redis.Redis(port=redis_server.port) as client:
        # As in deploy/compose: any other policy throws jobs away.
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", 1)
        taken = [offer(monitor, number) for number in range(1, 21)]
        assert eventually(lambda: monitor.stats().publish_errors)
        stats = monitor.stats()
        assert stats.outcomes["handed_over"] == 1
        assert stats.outcomes["queue_full"] == taken.count(False) > 0
        assert fleet.waiting() == 1
        client.config_set("maxmemory", 0)
    assert monitor.flush(30.0)
    fleet.start()
    expected = {"case-0", *(f"case-{n}" for n, was in enumerate(taken, 1) if was)}
    assert eventually(lambda: len(fleet.evaluated()) == len(expected))
    assert set(fleet.evaluated()) == expected
    assert monitor.stats().started == sum(monitor.stats().outcomes.values())
