"""Redis as a broker that loses nothing when a worker dies.

Celery's transport takes a message off its list and notes it as unacknowledged only after that; one
that is on its way, or waits in the socket for a worker with its hands full, is lost when the worker
is killed. Here Redis itself moves it from the list to a second one, `<queue>.held`, in one step,
and it leaves that one when it is noted. Any worker puts back what stays there for too long.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kombu.transport import redis, virtual
from kombu.utils.encoding import bytes_to_str
from kombu.utils.json import loads

from ragaliq.worker_tier.broker import set_aside_queue

__all__ = ["Transport"]

_PUT_BACK = """
local held = redis.call('LREM', KEYS[1], 1, ARGV[1])
if held > 0 then redis.call('RPUSH', KEYS[2], ARGV[1]) end
return held
"""
_LOOKED_AT = 100


def held_list(queue: str) -> str:
    """Where messages are between the queue and the note that a worker has them."""
    return f"{queue}.held"


class _HoldingQoS(redis.QoS):  # type: ignore[misc]  # no type hints
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._seen: dict[int, float] = {}  # by hash: a message may be large

    def append(self, message: Any, delivery_tag: str) -> None:
        """Note that this worker has a message; only then it leaves the list of held ones."""
        super().append(message, delivery_tag)
        queue, raw = self.channel.held.pop(delivery_tag, ("", None))
        if raw is not None:
            with self.channel.conn_or_acquire() as client:
                client.lrem(held_list(queue), 1, raw)

    def ack(self, delivery_tag: str) -> None:
        """Note that a message is done with."""
        with self._room_for_the_next(delivery_tag):
            super().ack(delivery_tag)

    def reject(self, delivery_tag: str, **how: Any) -> None:
        """Give a message back, or drop it."""
        with self._room_for_the_next(delivery_tag):
            super().reject(delivery_tag, **how)

    @contextmanager
    def _room_for_the_next(self, delivery_tag: str) -> Iterator[None]:
        # Redis refuses, such as a replica or a full one, and Celery logs it and goes on. Where the
        # message still counted as at hand the worker would, with its hands full, never ask again.
        try:
            yield
        except Exception:
            virtual.QoS.ack(self, delivery_tag)
            raise

    def restore_visible(self, start: int = 0, num: int = 10, interval: int = 10) -> None:
        """Put back what is unacknowledged, and what is held, for too long."""
        super().restore_visible(start=start, num=num, interval=interval)
        now, seen = time.monotonic(), self._seen
        self._seen = {}
        with self.channel.conn_or_acquire() as client:
            for queue in self._queues():
                for raw in client.lrange(held_list(queue), -_LOOKED_AT, -1):
                    key = hash(raw)
                    first = self._seen.setdefault(key, seen.get(key, now))
                    if now - first > self.visibility_timeout:
                        client.eval(_PUT_BACK, 2, held_list(queue), queue, raw)

    def _queues(self) -> list[str]:
        queues = self.channel.active_queues
        return [*queues, *map(set_aside_queue, queues)]


class _HoldingChannel(redis.Channel):  # type: ignore[misc]  # no type hints
    QoS = _HoldingQoS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.held: dict[str, tuple[str, bytes]] = {}
        self._asked = ""
        super().__init__(*args, **kwargs)

    def _brpop_start(self, timeout: float | None = None) -> None:
        queues = self._queue_cycle.consume(len(self.active_queues))
        if not queues:
            return
        self._asked = queues[0]
        self._in_poll = self.client.connection
        self._brpop_sent_at = time.monotonic()
        wait = self.brpop_timeout if timeout is None else timeout
        self.client.connection.send_command(
            *("BLMOVE", self._asked, held_list(self._asked), "RIGHT", "LEFT", wait or 0)
        )

    def _brpop_read(self, **options: Any) -> bool:
        try:
            try:
                raw = self.client.parse_response(self.client.connection, "BLMOVE", **options)
            except self.connection_errors:
                self.client.connection.disconnect()  # the next round connects again
                raise
            self._queue_cycle.rotate(self._asked)
            if not raw:
                raise redis.Empty
            self.connection._deliver(self._message(raw, self._asked), self._asked)
            return True
        finally:
            self._in_poll = None
            self._flush_brpop_reauth()

    def _get(self, queue: str) -> Any:
        with self.conn_or_acquire() as client:
            raw = client.lmove(queue, held_list(queue), "RIGHT", "LEFT")
        if not raw:
            raise redis.Empty
        return self._message(raw, queue)

    def _message(self, raw: bytes, queue: str) -> Any:
        message = loads(bytes_to_str(raw))
        self.held[message["properties"]["delivery_tag"]] = queue, raw
        return message


class Transport(redis.Transport):  # type: ignore[misc]  # no type hints
    """Celery's Redis transport, but for the way a message is taken."""

    Channel = _HoldingChannel
