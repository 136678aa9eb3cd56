"""Other Celery applications in the process and on the broker: neither disturbs the other."""

from __future__ import annotations

import pytest
import redis
from celery import Celery
from redis_server import RedisServer
from worker_fleet import eventually, offer

from ragaliq import CeleryExecutor, Monitor
from ragaliq.worker_tier.broker import celery_app

SECRET = "Quux"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"task_routes": {"*": {"queue": "mine", "serializer": "pickle", "priority": 9}}},
        {"task_default_priority": 6, "task_queue_max_priority": 10},
        {"broker_transport_options": {"global_keyprefix": "mine:"}},
        {"task_create_missing_queues": False, "task_always_eager": True},
        {"task_serializer": "pickle", "task_compression": "gzip", "task_protocol": 1},
    ],
    ids=lambda settings: next(iter(settings), "plain"),
)
def test_an_applications_own_settings_take_no_job_to_where_no_worker_looks(redis_server, settings):
    mine = Celery("mine", broker=redis_server.url(), set_as_current=False)
    mine.conf.update(settings)
    with Monitor(executor=CeleryExecutor(mine), evaluators=["faithfulness"]) as monitor:
        offer(monitor, 1)
        assert monitor.flush(10.0)
    with redis.Redis(port=redis_server.port) as client:
        assert client.llen("ragaliq") == 1
        assert set(client.scan_iter("[^_]*")) == {b"ragaliq"}
        assert b'"content-type": "application/json"' in client.lindex("ragaliq", 0)
    assert mine.conf.find_value_for_key("task_serializer") == settings.get(
        "task_serializer", "json"
    )


def test_celerys_own_environment_variables_are_for_others(
    redis_server, handing_over, tmp_path, monkeypatch
):
    folder = tmp_path / "another"
    folder.mkdir()
    another = RedisServer(folder)
    try:
        monkeypatch.setenv("CELERY_BROKER_URL", another.url())
        monkeypatch.setenv("CELERY_RESULT_BACKEND", "no-such-backend://")
        monkeypatch.setenv("CELERY_LOADER", "no.such.loader")
        monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "no.such.settings")
        monitor = handing_over()
        offer(monitor, 1)
        assert monitor.flush(10.0)
        with redis.Redis(port=another.port) as client:
            assert client.keys() == []
        with redis.Redis(port=redis_server.port) as client:
            assert client.llen("ragaliq") == 1
    finally:
        another.kill()


def test_commands_of_other_applications_reach_no_worker_and_no_command_shows_texts(
    fleet, handing_over
):
    worker = fleet.start(FLEET_DELAY="60", CELERY_BROKER_URL="redis://127.0.0.1:1/0")
    offer(handing_over(), 1, SECRET)
    assert eventually(lambda: fleet.unacknowledged() == 1)

    theirs = Celery("theirs", broker=fleet.server.url(), set_as_current=False)
    theirs.control.shutdown()
    assert theirs.control.ping(timeout=0.5) == []
    ours = celery_app(fleet.server.url())
    ((_, (at_hand,)),) = ours.control.inspect(timeout=5.0, limit=1).active().items()
    assert at_hand["name"] == "ragaliq.evaluate"
    assert SECRET not in str(at_hand)
    assert worker.poll() is None
