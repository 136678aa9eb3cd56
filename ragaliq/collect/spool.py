"""Requests on disk until all their runs have an outcome, so that a restart loses none."""

from __future__ import annotations

import logging
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ragaliq.collect.requests import Request
from ragaliq.core.files import lock
from ragaliq.core.log_once import LogOnce
from ragaliq.errors import ConfigurationError

logger = logging.getLogger(__name__)

_HEAD = struct.Struct(">BI")  # flags, and the length of the body
_IS_LOGS, _IS_JSON, _IS_GZIP = 1, 2, 4
_SEGMENT_BYTES = 16 * 2**20
_SEGMENT_SECONDS = 60.0


class Spool:
    """Folder of segments: requests as received, and the traces of each that are settled.

    A segment is deleted when all its kept traces are settled. The next process that uses the folder
    reads what a killed one left; while this one lives, others are refused.

    Args:
        folder: Where; made if it is missing.
        max_bytes: Bytes on disk beyond which `is_full`.
        clock: Seconds, monotonic.

    Raises:
        ConfigurationError: The folder cannot be used, or another process uses it.
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
            self._held = (folder / ".writable").open("ab")
        except OSError as error:
            raise ConfigurationError(f"--spool {folder}: {error.strerror}") from None
        in_use = f"--spool {folder}: another process uses it; give each a folder of its own"
        try:
            lock(self._held, ConfigurationError(in_use))
        except ConfigurationError:
            self._held.close()
            raise
        self._folder, self._max_bytes, self._clock = folder, max_bytes, clock
        self._lock, self._log_once = threading.Lock(), LogOnce(logger)
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
        """Store a request with kept traces; it is durable when this returns.

        Raises:
            OSError: It could not be stored, for instance on a full disk.
        """
        with self._lock:
            path = self._segment()
            flags = _IS_LOGS * (request.signal == "logs") | _IS_JSON * request.is_json
            head = _HEAD.pack(flags | _IS_GZIP * request.is_gzip, len(request.body))
            try:
                with path.open("ab") as file:
                    file.write(head + request.body)
            except OSError:
                self._retire(path)  # after a part of a request nothing could be read
                raise
            self._sizes[path] = self._sizes.get(path, 0) + len(head) + len(request.body)
            self._segments[path] |= traces

    def settled(self, trace_id: str) -> None:
        """Mark a trace as settled, and delete segments without open traces."""
        with self._lock:
            if self._held.closed:
                return
            held = [path for path, traces in self._segments.items() if trace_id in traces]
            for path in held:
                self._segments[path].discard(trace_id)
                try:
                    with path.with_suffix(".done").open("a", encoding="ascii") as file:
                        file.write(f"\n{trace_id}")  # the line before may have been cut short
                except OSError as error:  # then the next process scores the trace again
                    self._log_once.failure("a settled trace could not be noted", error)
            # Only when all are noted: else the rest of a trace would be read as a whole one.
            for path in held:
                self._delete_if_done(path)

    def close(self) -> None:
        """Leave the folder to the next process; what is settled from now on is not noted."""
        with self._lock:
            self._held.close()

    def replay(self) -> Iterator[tuple[Request, set[str], Callable[[set[str]], None]]]:
        """Requests left by a killed process: each with its settled traces, and a callback.

        Call the callback with the traces that are kept of it.
        """
        settled: set[str] = set()
        for done in self._folder.glob("*.done"):
            settled.update(done.read_text("ascii", "replace").split())
            if not done.with_suffix(".otlp").exists():
                done.unlink()  # killed as it deleted both
        for path in self._before:
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
            self._retire(path)
            path = None
        if path is None:
            self._number += 1
            self._current = path = self._folder / f"{self._number:020d}.otlp"
            self._segments[path], self._began = set(), now
            self._filling.add(path)
        return path

    def _retire(self, path: Path) -> None:
        """End a segment: the next request begins another."""
        self._current = None
        self._filling.discard(path)
        self._delete_if_done(path)

    def _delete_if_done(self, path: Path) -> None:
        if path in self._filling or self._segments.get(path, {""}):
            return
        del self._segments[path]
        self._sizes.pop(path, None)
        try:
            for each in (path, path.with_suffix(".done")):
                each.unlink(missing_ok=True)
        except OSError as error:
            self._log_once.failure("a settled segment could not be deleted", error)


def _requests(path: Path) -> Iterator[Request]:
    size = path.stat().st_size
    with path.open("rb") as file:
        while head := file.read(_HEAD.size):
            flags, length = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 1)
            body = file.read(min(length, size))  # room is made for all that is asked for
            if len(body) < length:
                logger.warning(
                    "the last %d bytes of %s are not a whole request: it was being written, and "
                    "not answered, when the process was killed, or the file is damaged",
                    len(head) + len(body),
                    path,
                )
                return
            signal = "logs" if flags & _IS_LOGS else "traces"
            yield Request(signal, bool(flags & _IS_JSON), bool(flags & _IS_GZIP), body)
