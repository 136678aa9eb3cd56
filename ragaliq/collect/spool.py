"""Requests on disk until all their runs have an outcome, so that a restart loses none."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ragaliq.collect.requests import Request
from ragaliq.errors import ConfigurationError

_HEAD = struct.Struct(">BI")  # flags, and the length of the body
_IS_LOGS, _IS_JSON, _IS_GZIP = 1, 2, 4
_SEGMENT_BYTES = 16 * 2**20
_SEGMENT_SECONDS = 60.0


class Spool:
    """Folder of segments: requests as received, and the traces of each that are settled.

    A segment is deleted when all its kept traces are settled. The next process that uses the folder
    reads what a killed one left; two must not use it at once.

    Args:
        folder: Where; made if it is missing.
        max_bytes: Bytes on disk beyond which `is_full`.
        clock: Seconds, monotonic.

    Raises:
        ConfigurationError: The folder cannot be used.
    """

    def __init__(
        self,
        folder: Path,
        *,
        max_bytes: int = 2**30,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / ".writable").touch()
        except OSError as error:
            raise ConfigurationError(f"--spool {folder}: {error.strerror}") from None
        self._folder, self._max_bytes, self._clock = folder, max_bytes, clock
        self._lock = threading.Lock()
        self._before = sorted(folder.glob("*.otlp"))
        self._segments: dict[Path, set[str]] = {path: set() for path in self._before}
        self._sizes = {path: path.stat().st_size for path in self._before}
        # One that may still get requests is not deleted.
        self._filling: set[Path] = set(self._before)
        self._current: Path | None = None
        self._began = 0.0
        self._number = max((int(path.stem) for path in self._before), default=0)

    @property
    def is_full(self) -> bool:
        """True if no more fits."""
        return sum(self._sizes.values()) > self._max_bytes

    def append(self, request: Request, traces: set[str]) -> None:
        """Store a request with kept traces; it is durable when this returns."""
        with self._lock:
            path = self._segment()
            flags = _IS_LOGS * (request.signal == "logs") | _IS_JSON * request.is_json
            head = _HEAD.pack(flags | _IS_GZIP * request.is_gzip, len(request.body))
            with path.open("ab") as file:
                file.write(head + request.body)
            self._sizes[path] = self._sizes.get(path, 0) + len(head) + len(request.body)
            self._segments[path] |= traces

    def settled(self, trace_id: str) -> None:
        """Mark a trace as settled, and delete segments without open traces."""
        with self._lock:
            for path, traces in list(self._segments.items()):
                if trace_id in traces:
                    traces.discard(trace_id)
                    with path.with_suffix(".done").open("a", encoding="ascii") as file:
                        file.write(trace_id + "\n")
                self._delete_if_done(path)

    def replay(self) -> Iterator[tuple[Request, set[str], Callable[[set[str]], None]]]:
        """Requests left by a killed process: each with its settled traces, and a callback.

        Call the callback with the traces that are kept of it.
        """
        for path in self._before:
            done = path.with_suffix(".done")
            settled = set(done.read_text("ascii").split()) if done.exists() else set()
            for request in _requests(path):
                yield request, settled, self._segments[path].update
            with self._lock:
                self._filling.discard(path)
                self._delete_if_done(path)
        self._before = []

    def _segment(self) -> Path:
        now, path = self._clock(), self._current
        if path is not None and (
            now - self._began > _SEGMENT_SECONDS or self._sizes.get(path, 0) > _SEGMENT_BYTES
        ):
            self._filling.discard(path)
            self._delete_if_done(path)
            path = None
        if path is None:
            self._number += 1
            self._current = path = self._folder / f"{self._number:020d}.otlp"
            self._segments[path], self._began = set(), now
            self._filling.add(path)
        return path

    def _delete_if_done(self, path: Path) -> None:
        if path in self._filling or self._segments.get(path, {""}):
            return
        del self._segments[path]
        self._sizes.pop(path, None)
        for each in (path, path.with_suffix(".done")):
            each.unlink(missing_ok=True)


def _requests(path: Path) -> Iterator[Request]:
    with path.open("rb") as file:
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            flags, length = _HEAD.unpack(head)
            body = file.read(length)
            if len(body) < length:
                return  # it was killed while it wrote, before it answered
            signal = "logs" if flags & _IS_LOGS else "traces"
            yield Request(signal, bool(flags & _IS_JSON), bool(flags & _IS_GZIP), body)
