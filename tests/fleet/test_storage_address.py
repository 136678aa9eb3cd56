"""Addresses of a storage: which are taken, and what is said of the others."""

from __future__ import annotations

import sys

import pytest
from broker_servers import RedisServer

from free_ports import free_port
from ragaliq import Budget, ConfigurationError, RateLimits
from ragaliq.scoring.limits.rate_limits import RateLimiter
from self_signed import MISTRUSTED, self_signed


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        (None, "cannot be used"),
        (b"redis://host:1/0", "cannot be used"),
        ("", "cannot be used"),
        ("secret@host:6379", "cannot be used"),
        ("MEMORY://", "cannot be used"),
        ("mongodb://user:secret@host:1", "cannot be used"),
        ("redis://:secret@host:port/0", "cannot be used"),
        ("redis://:sec/ret@host:1/0", "cannot be used"),
        ("redis://[::1", "cannot be used"),
        ("redis://:secret@host:1/shop", "the number of a database"),
        ("redis://:secret@host:1/0?colour=blue", "cannot be used"),
        ("redis://:secret@host:1/0?socket_timeout=long", "cannot be used"),
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
        address = f"unix://{folder / 's'}?db=3"
        limiter = RateLimiter(RateLimits(requests_per_minute=5, storage=address))
        await limiter.take(0)
        assert limiter.storage == "shared"
        await limiter.aclose()
    finally:
        server.kill()


def test_without_the_client_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'ragaliq\[redis\]'"):
        Budget(usd_per_day=5.0, storage="redis://127.0.0.1:1/0")


async def storage_behind_tls(folder, query="", **options):
    """State of limits whose storage speaks TLS, after a call."""
    self_signed(folder, **options)
    port = free_port()
    files = f"--tls-cert-file {folder}/certificate.pem --tls-key-file {folder}/key.pem"
    settings = f"--tls-port {port} {files} --tls-auth-clients no --requirepass very-secret"
    # Its plain port asks for the password too, which the wait for its start need not give.
    server = RedisServer(folder, *settings.split(), answer=b"-NOAUTH")
    address = f"rediss://:very-secret@127.0.0.1:{port}/0?{query}"
    limiter = RateLimiter(RateLimits(requests_per_minute=50, storage=address))
    try:
        await limiter.take(0)
        return limiter.storage
    finally:
        await limiter.aclose()
        server.kill()


async def test_limits_are_shared_over_tls_with_a_trusted_certificate(tmp_path):
    trusts = f"ssl_ca_certs={tmp_path}/certificate.pem"
    assert await storage_behind_tls(tmp_path, trusts) == "shared"


@pytest.mark.parametrize("kind", ["nobody's", *MISTRUSTED])
async def test_a_storage_without_a_trusted_certificate_shares_nothing_and_the_log_says_why(
    kind, tmp_path, caplog
):
    options, reason = MISTRUSTED.get(kind, ({}, "self-signed certificate"))
    trusts = f"ssl_ca_certs={tmp_path}/certificate.pem" if options else ""
    assert await storage_behind_tls(tmp_path, trusts, **options) == "unavailable"
    assert f"certificate that is not trusted ({reason}" in caplog.text
    assert "very-secret" not in caplog.text
