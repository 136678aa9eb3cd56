"""Addresses of a storage: which are taken, and what is said of the others."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest
from redis_server import RedisServer

from ragaliq import Budget, ConfigurationError, Monitor, RAGTestCase, RateLimits
from ragaliq.scoring.limits.turns import Turns
from ragaliq.testing import ScriptedJudge


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        (None, "must be an address, .* got NoneType"),
        (b"redis://host:1/0", "must be an address, .* got bytes"),
        ("", "not of the form"),
        ("redis", "not of the form"),
        ("secret@host:6379", "not of the form"),
        ("secret:secret://host:6379", "not of the form"),
        ("MEMORY://", "it is not Redis"),
        ("memcached://secret@host:1", "it is not Redis"),
        ("mongodb://user:secret@host:1", "it is not Redis"),
        ("redis://user:secret@host", "with a host and a port"),
        ("redis://:secret@host:port/0", "with a host and a port"),
        ("redis://:sec/ret@host:1/0", "with a host and a port"),
        ("redis://[::1", "with a host and a port"),
        ("redis://:secret@host:1/shop", "the number of a database"),
        ("redis://:secret@host:1/-1", "the number of a database"),
        ("redis://:secret@host:1/0?colour=blue", "cannot be used"),
        ("redis://:secret@host:1/0?socket_timeout=long", "cannot be used"),
        ("redis+sentinel://:secret@host:1", "cannot be used"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_and_not_shown(address, problem):
    for limits in (
        lambda: Budget(usd_per_day=1.0, storage=address),
        lambda: RateLimits(requests_per_minute=1, storage=address),
    ):
        with pytest.raises(ConfigurationError, match=problem) as refused:
            limits()
        assert "secret" not in str(refused.value)


def test_a_password_is_not_shown_where_the_limits_are():
    address = "rediss://user:secret@host:6379/3"
    budget = Budget(usd_per_day=1.0, storage=address)
    limits = RateLimits(requests_per_minute=1, storage=address)
    assert "secret" not in f"{budget!r} {budget} {limits!r} {limits}"
    assert budget != Budget(usd_per_day=1.0, storage="rediss://user:other@host:6379/3")


async def test_a_unix_socket_with_a_database_is_an_address(tmp_path):
    folder = tmp_path / "redis"
    folder.mkdir()
    server = RedisServer(folder, "--unixsocket", str(folder / "s"))
    try:
        address = f"redis+unix://{folder / 's'}?db=3"
        turns = Turns(RateLimits(requests_per_minute=5, storage=address))
        await turns.take(0)
        assert turns.storage == "shared"
        await turns.aclose()
    finally:
        server.kill()


@pytest.mark.parametrize("kind", ["redis+cluster://{}", "redis+sentinel://{}/primary"])
def test_whatever_the_client_says_of_its_servers_no_run_is_lost(redis_server, kind):
    # The server is neither.
    address = kind.format(f"127.0.0.1:{redis_server.port}")
    gc.collect()
    before = open_files()
    with Monitor(
        judge=ScriptedJudge(),
        evaluators=["relevance"],
        judge_limits=RateLimits(requests_per_minute=50, storage=address),
    ) as monitor:
        monitor.submit(RAGTestCase(query="q", context=["c"], response="r"))
        assert monitor.flush(10.0)
        stats = monitor.stats()
    assert stats.outcomes == {"evaluated": 1}
    assert stats.limits_storage == "away"
    assert open_files() <= before


def open_files():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("missing", ["redis", "limits.storage"])
def test_without_the_client_it_says_what_to_install(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ConfigurationError, match=r"pip install 'ragaliq\[redis\]'"):
        Budget(usd_per_day=5.0, storage="redis://127.0.0.1:1/0")
