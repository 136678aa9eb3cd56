"""The HTTP side of the loopback servers."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any

from ragaliq.testing.replies import Json, Reply

__all__ = ["Getter", "Handler", "Loopback"]

Handler = Callable[[str, Mapping[str, str], Json | None], Reply]
"""Gives the reply to a path, headers by lower-case name, and a body; None for one without JSON."""

Getter = Callable[[str, Mapping[str, str]], Reply]
"""Gives the reply to a GET request: its path, with what is asked behind `?`, and headers."""

_CLOSING_TIME = 5.0


class Loopback(socketserver.ThreadingTCPServer):
    """A threaded HTTP server on a free port of the loopback interface.

    Args:
        handle: Gives the reply to a request; called from several threads.
        name: Of the thread that listens.
        get: Gives the reply to a GET request; None where the protocol has none.
    """

    # Not HTTPServer, which looks up the name of the machine before it listens.
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, handle: Handler, *, name: str, get: Getter | None = None) -> None:
        self.handle_post, self.handle_get = handle, get
        self.closing = threading.Event()
        self._connections: set[socket.socket] = set()
        self._changed = threading.Condition()
        super().__init__(("127.0.0.1", 0), _Connection)
        threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.01}, name=name, daemon=True
        ).start()

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Note the connection and serve it in a thread of its own."""
        with self._changed:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close the connection and forget it."""
        super().shutdown_request(request)
        with self._changed:
            self._connections.discard(request)
            self._changed.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away; that is what time limits do."""

    def stop(self) -> None:
        """Break all connections and stop listening."""
        self.closing.set()
        self.shutdown()
        self.server_close()
        with self._changed:
            for connection in self._connections:
                # Wakes the thread that waits for the connection's next request.
                with contextlib.suppress(OSError):  # the client has just gone
                    connection.shutdown(socket.SHUT_RD)
            self._changed.wait_for(lambda: not self._connections, timeout=_CLOSING_TIME)


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Loopback

    def do_POST(self) -> None:
        """Read one request and send the reply to it."""
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            content = json.loads(body)
        except ValueError:
            content = None
        path = self.path.partition("?")[0]
        self._send(
            self.server.handle_post(path, headers, content if isinstance(content, dict) else None)
        )

    def do_GET(self) -> None:
        """Send the reply to a request without a body."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        if self.server.handle_get is None:
            self.send_error(501)
        else:
            self._send(self.server.handle_get(self.path, headers))

    def _send(self, reply: Reply) -> None:
        if reply.delay and self.server.closing.wait(reply.delay):
            self.close_connection = True
            return
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        headers = {"content-type": "application/json", **reply.headers}
        self.send_response(reply.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: reply.cut_after])
        if reply.cut_after is not None:
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Write nothing: requests hold the texts that are judged."""
