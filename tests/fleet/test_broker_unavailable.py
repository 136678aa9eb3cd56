"""The broker is down, frozen or refuses: the application notices nothing, and nothing is hidden."""

from __future__ import annotations

import logging
import os
import threading

import pytest
import redis
from worker_fleet import eventually, offer

from ragaliq import Monitor
from ragaliq.worker import BrokerExecutor


def test_while_the_broker_is_down_runs_wait_and_beyond_the_queue_they_are_counted_drops(
    redis_server, enqueueing, caplog
):
    redis_server.kill()
    monitor = enqueueing(max_queue=10)
    taken = [offer(monitor, number) for number in range(50)]
    # One is at hand besides the ten in the queue.
    assert eventually(lambda: monitor.stats().publish_errors >= 2)
    assert sum(taken) in (10, 11)
    stats = monitor.stats()
    assert stats.outcomes == {"queue_full": 50 - sum(taken)}
    assert stats.started == sum(stats.outcomes.values()) + stats.pending

    redis_server.start()
    assert monitor.flush(30.0)
    assert monitor.stats().outcomes == {"queue_full": 50 - sum(taken), "enqueued": sum(taken)}
    with redis.Redis(port=redis_server.port) as client:
        assert client.xlen("ragaliq") == sum(taken)
    warnings = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert len(warnings) <= 2  # one for each kind of failure, not one for each attempt


def test_a_frozen_broker_holds_up_neither_the_application_nor_the_monitor_for_ever(
    redis_server, enqueueing
):
    monitor = enqueueing(max_queue=5, timeout=0.3)
    offer(monitor, 0)
    assert monitor.flush(10.0)
    redis_server.freeze()
    offered = threading.Event()

    def offer_many():
        for number in range(1, 20):
            offer(monitor, number)
        offered.set()

    threading.Thread(target=offer_many, daemon=True).start()
    assert offered.wait(5.0)  # the broker would keep it for good
    assert eventually(lambda: monitor.stats().publish_errors >= 2)
    redis_server.thaw()
    assert monitor.flush(30.0)
    stats = monitor.stats()
    assert stats.outcomes["enqueued"] + stats.outcomes["queue_full"] == 20


def test_what_cannot_be_published_when_the_monitor_closes_is_counted(redis_server, enqueueing):
    redis_server.freeze()
    monitor = enqueueing(timeout=0.5)
    for number in range(5):
        offer(monitor, number)
    assert not monitor.close(timeout=0.2)
    assert eventually(lambda: monitor.stats().pending == 0)
    assert monitor.stats().outcomes == {"shutdown": 5}


def test_a_broker_that_refuses_the_password_is_tried_again_without_showing_the_password(
    redis_server, caplog
):
    address = f"redis://:hunter2@127.0.0.1:{redis_server.port}/0"
    with Monitor(executor=BrokerExecutor(address), metrics=["faithfulness"]) as monitor:
        with redis.Redis(port=redis_server.port) as client:
            client.config_set("requirepass", "another")
        offer(monitor, 1)
        assert eventually(lambda: monitor.stats().publish_errors >= 1)
        with redis.Redis(port=redis_server.port, password="another") as client:
            client.config_set("requirepass", "hunter2")
        assert monitor.flush(30.0)
        assert monitor.stats().outcomes == {"enqueued": 1}
    assert "AuthenticationError" in caplog.text
    assert "hunter2" not in caplog.text


def test_no_text_is_in_the_applications_log(redis_server, enqueueing, caplog):
    caplog.set_level(logging.DEBUG)
    monitor = enqueueing()
    offer(monitor, 1, "Quux")
    assert monitor.flush(10.0)
    assert "Quux" not in caplog.text


def test_a_full_broker_keeps_what_it_has_and_takes_more_when_there_is_room(
    redis_server, enqueueing
):
    monitor = enqueueing(max_queue=5)
    assert offer(monitor, 0)
    assert monitor.flush(10.0)
    with redis.Redis(port=redis_server.port) as client:
        # As in the compose file: any other policy throws jobs away.
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", 1)
        taken = [offer(monitor, number) for number in range(1, 21)]
        assert eventually(lambda: monitor.stats().publish_errors)
        assert monitor.stats().outcomes["enqueued"] == 1
        assert client.xlen("ragaliq") == 1
        client.config_set("maxmemory", 0)
        assert monitor.flush(30.0)
        assert client.xlen("ragaliq") == 1 + sum(taken)
    stats = monitor.stats()
    assert stats.outcomes == {"enqueued": 1 + sum(taken), "queue_full": taken.count(False)}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_publishes_on_a_connection_of_its_own(redis_server, enqueueing):
    monitor = enqueueing()
    offer(monitor, 1)
    assert monitor.flush(10.0)
    child = os.fork()
    if child == 0:
        offer(monitor, 2)
        done = monitor.flush(10.0) and monitor.stats().outcomes == {"enqueued": 1}
        os._exit(0 if done else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    offer(monitor, 3)
    assert monitor.flush(10.0)
    assert monitor.stats().outcomes == {"enqueued": 2}
    assert monitor.stats().publish_errors == 0
    with redis.Redis(port=redis_server.port) as client:
        assert client.xlen("ragaliq") == 3
