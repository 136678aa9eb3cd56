"""Receivers as they are on a bad day: gone, failing, or taking what comes and never answering."""

import contextlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["receiver"]

HOURS = 3600.0


class _Receiver(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, status, delay):
        self.status, self.delay = status, delay
        self.closing, self.asked = threading.Event(), threading.Event()
        super().__init__(("127.0.0.1", 0), _Answer)


class _Answer(BaseHTTPRequestHandler):
    server: _Receiver

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.server.asked.set()
        if self.server.closing.wait(self.server.delay):
            return
        self.send_response(self.server.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def receiver(kind):
    """The address of a `healthy`, `dead`, `slow` or `failing` receiver."""
    if kind == "dead":
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # bound, so that nobody else is; not listening
            yield f"http://127.0.0.1:{taken.getsockname()[1]}"
        return
    status, delay = {"healthy": (200, 0.0), "slow": (200, HOURS), "failing": (500, 0.0)}[kind]
    server = _Receiver(status, delay)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
