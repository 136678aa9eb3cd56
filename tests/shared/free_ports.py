"""Ports for servers that tests start."""

import random
import socket
from contextlib import suppress

# Not the generator that tests are seeded with: two that run at once would get the same ports.
_RANDOM = random.SystemRandom()


def free_port() -> int:
    """A port below those of outgoing connections, of which other tests open many meanwhile."""
    while True:
        port = _RANDOM.randint(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
