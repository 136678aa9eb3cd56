"""A loopback server, by what it does with a connection."""

import socket
import threading
from contextlib import contextmanager, suppress


@contextmanager
def listening(serve):
    """Call `serve` with each connection, in a thread of its own; gives the port."""

    def accept():
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(door.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as door:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield door.getsockname()[1]
        finally:
            door.shutdown(socket.SHUT_RDWR)
