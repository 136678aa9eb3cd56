"""Brokers and shared storage behind TLS whose certificate is not theirs get no password."""

import asyncio
from contextlib import suppress

import pytest

from connections import listening
from ragaliq.errors import BrokerUnavailableError
from ragaliq.worker.brokers import broker_at
from self_signed import MISTRUSTED, self_signed

# NATS's server speaks first, and asks for TLS.
_INFO = b'INFO {"server_id":"a","version":"2.10","max_payload":1048576,"tls_required":true}\r\n'
ADDRESSES = {
    "redis": ("rediss://user:very-secret@127.0.0.1:{}/0", b""),
    "rabbit": ("amqps://user:very-secret@127.0.0.1:{}/", b""),
    "nats": ("tls://user:very-secret@127.0.0.1:{}", _INFO),
}


def server(context, greeting, heard):
    """Serve TLS after a greeting; `heard` gets what clients send inside it. Gives the port."""

    def serve(line):
        with suppress(OSError), line:
            line.settimeout(5.0)
            line.sendall(greeting)
            with context.wrap_socket(line, server_side=True) as inside:
                if said := inside.recv(1000):
                    heard.append(said)

    return listening(serve)


def opened(broker_name, context, heard, query=""):
    """Open a broker on such a server; return the error's message."""
    address, greeting = ADDRESSES[broker_name]

    async def attempt(port):
        broker = broker_at(address.format(port) + query, timeout=2.0)
        with pytest.raises(BrokerUnavailableError) as caught:
            await broker.open()
        return str(caught.value)

    with server(context, greeting, heard) as port:
        return asyncio.run(attempt(port))


@pytest.fixture(params=ADDRESSES)
def name(request):
    return request.param


def test_a_certificate_that_nobody_vouches_for_gets_no_password(name, tmp_path):
    heard = []
    message = opened(name, self_signed(tmp_path), heard)
    assert heard == []
    assert "very-secret" not in message
    if name != "nats":  # its client retries until the time is up
        assert "certificate that is not trusted (self-signed certificate)" in message


@pytest.mark.parametrize("kind", MISTRUSTED)
@pytest.mark.parametrize(("name", "option"), [("redis", "ssl_ca_certs"), ("rabbit", "cafile")])
def test_a_trusted_authoritys_certificate_must_be_valid_and_the_hosts(name, option, kind, tmp_path):
    options, reason = MISTRUSTED[kind]
    heard, context = [], self_signed(tmp_path, **options)
    message = opened(name, context, heard, f"?{option}={tmp_path}/certificate.pem")
    assert heard == []
    assert f"certificate that is not trusted ({reason}" in message


def test_a_trusted_certificate_is_accepted(tmp_path):
    heard = []
    context = self_signed(tmp_path)
    opened("redis", context, heard, f"?ssl_ca_certs={tmp_path}/certificate.pem")
    assert b"very-secret" in heard[0]
