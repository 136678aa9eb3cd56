"""Redis Streams, RabbitMQ, NATS JetStream and Kafka, through faststream's public interface.

Jobs are in a queue. A job of a worker that died is delivered again, and such jobs are evaluated one
at a time, so that only the job that kills its worker is counted again: from the queue's pending
list on Redis, from the queue `NAME.retry` on RabbitMQ and NATS. Jobs that fail for good go to
`NAME.dead`. The broker counts deliveries. Kafka does not, and delivers a partition's jobs to one
worker in order.
"""

from __future__ import annotations

import asyncio
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from logging import DEBUG, LogRecord, getLogger
from traceback import clear_frames
from typing import Any, ClassVar
from uuid import uuid4

from ragaliq.core.proxies import untrusted_certificate
from ragaliq.errors import BrokerUnavailableError, ConfigurationError
from ragaliq.scoring.settings import ENV_BROKER_URL

_LOGGER = getLogger("ragaliq.worker.brokers")


def _in_one_line(record: LogRecord) -> bool:
    # Each attempt logs the client library's traceback, some with the broker's address.
    if record.exc_info and record.exc_info[0]:
        record.msg = f"{record.getMessage().partition('(')[0]}: {record.exc_info[0].__name__}"
        record.args = record.exc_info = record.exc_text = None
    return True


_LOGGER.addFilter(_in_one_line)

Handler = Callable[[Any], Awaitable[None]]
DeadMessage = tuple[bytes, Callable[[], Awaitable[Any]]]
"""What a message among the dead letters holds, and what removes it from the broker."""


class Broker(ABC):
    """Connection to a broker, as publisher or worker; belongs to one event loop.

    In seconds: `timeout` limits each request, a job that a worker holds for `hold` goes to another
    one, and at a worker's end its jobs have `grace`. New jobs are in `queue`, redelivered ones in
    `retry`, dead letters in `dead`; `native` is faststream's broker.
    """

    name: ClassVar[str]
    returns_to_queue: ClassVar[bool] = True
    """Whether a message that a worker held comes again as a new one does."""

    def __init__(
        self,
        url: str,
        *,
        queue: str = "ragaliq",
        timeout: float = 5.0,
        concurrency: int = 1,
        hold: float = 330.0,
        grace: float = 0.0,
    ) -> None:
        self.url, self.queue = url, queue
        self.retry, self.dead = f"{queue}.retry", f"{queue}.dead"
        self.timeout, self.concurrency, self.hold = timeout, concurrency, hold
        from faststream import AckPolicy

        self.native: Any = self._native(
            url,
            ack_policy=AckPolicy.MANUAL,
            # Pass the whole message to the handler, which parses it itself.
            decoder=lambda message: message,
            apply_types=False,
            graceful_timeout=grace + 5.0,
            logger=_LOGGER,
            log_level=DEBUG,  # of each message it says that it was received and processed
        )

    @abstractmethod
    def _native(self, url: str, **options: Any) -> Any: ...

    @abstractmethod
    def subscribe(self, fresh: Handler, again: Handler) -> None:
        """Call `fresh` with new messages, several at once, and `again` with redelivered ones."""

    async def open(self) -> None:
        """Connect; a connection that is lost later is restored.

        Raises:
            BrokerUnavailableError: It cannot be reached.
        """
        try:
            # Several requests, and NATS's client retries for ever.
            async with asyncio.timeout(4 * self.timeout):
                await self.connect()
        except Exception as error:  # noqa: BLE001 - client libraries have errors of every class
            with suppress(Exception):  # NATS's client raises while it reconnects
                await self.native.stop()
            refused = unavailable(error)
            free_frames(error)
            raise refused from None

    @abstractmethod
    async def connect(self) -> None:
        """Connect, and create missing queues."""

    @abstractmethod
    async def publish(self, body: bytes, to: str) -> None:
        """Put a message on a queue; it is safe with the broker when this returns."""

    def body(self, message: Any) -> bytes:
        """Body of a message."""
        return bytes(message.body)

    async def deliveries(self, message: Any) -> int:  # noqa: ARG002 - Kafka counts nothing
        """Number of deliveries of a redelivered message, including this one."""
        return 0

    async def done(self, message: Any) -> None:
        """Acknowledge a message, which removes it."""
        await message.ack()

    @abstractmethod
    async def dead_messages(self) -> list[DeadMessage]:
        """Connect, and return the dead letters; those that are not removed stay."""


class _Redis(Broker):
    """Redis Streams: the job is in the field `job`, its group has the queue's name."""

    name = "redis"
    returns_to_queue = False

    def _native(self, url: str, **options: Any) -> Any:
        from faststream.redis import RedisBroker

        options |= {"socket_timeout": self.timeout, "socket_connect_timeout": self.timeout}
        return RedisBroker(url, parser=_field, **options)

    def subscribe(self, fresh: Handler, again: Handler) -> None:
        from faststream.redis import StreamSub

        stream = partial(
            StreamSub,
            self.queue,
            group=self.queue,
            consumer=f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}",
            polling_interval=min(1000, int(self.hold * 100)),
            max_records=1,  # what a worker holds and has not begun waits for it
        )
        self.native.subscriber(stream=stream(), max_workers=self.concurrency)(fresh)
        held = stream(min_idle_time=int(self.hold * 1000))
        self.native.subscriber(stream=held)(again)

    async def connect(self) -> None:
        from redis.exceptions import ResponseError

        client = await self.native.connect()
        try:
            # By default a group begins with messages published after it.
            await client.xgroup_create(self.queue, self.queue, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise

    async def publish(self, body: bytes, to: str) -> None:
        client = await self.native.connect()
        await client.xadd(to, {"job": body})

    def body(self, message: Any) -> bytes:
        return bytes(message.raw_message["data"].get(b"job", b""))

    async def deliveries(self, message: Any) -> int:
        return int(await message.get_delivery_count())

    async def done(self, message: Any) -> None:
        # Both or neither: Redis 6 delivers removed but pending messages for ever, as empty ones.
        ids = message.raw_message["message_ids"]
        both = (await self.native.connect()).pipeline()
        await both.xdel(self.queue, *ids).xack(self.queue, self.queue, *ids).execute()

    async def dead_messages(self) -> list[DeadMessage]:
        await self.open()
        client = await self.native.connect()
        return [
            (fields.get(b"job", b""), partial(client.xdel, self.dead, entry))
            for entry, fields in await client.xrange(self.dead)
        ]


async def _field(message: Any, original: Callable[[Any], Awaitable[Any]]) -> Any:
    # faststream would decode every field, of any bytes, as text; the handler reads ours.
    return await original({**message, "data": {**message["data"], b"__data__": b"-"}})


class _Rabbit(Broker):
    """RabbitMQ: quorum queues, which survive restarts and count deliveries."""

    name = "rabbitmq"

    def _native(self, url: str, **options: Any) -> Any:
        from faststream.rabbit import Channel, RabbitBroker

        channel = Channel(prefetch_count=self.concurrency, on_return_raises=True)
        options |= {"timeout": self.timeout, "reconnect_interval": 1.0}
        return RabbitBroker(url, default_channel=channel, **options)

    def _queue(self, name: str) -> Any:
        from faststream.rabbit import QueueType, RabbitQueue

        # Workers give up earlier; from 4.0 on the broker would drop a message after 20 times.
        arguments: Any = {"x-delivery-limit": 1_000_000}
        return RabbitQueue(name, queue_type=QueueType.QUORUM, durable=True, arguments=arguments)

    def subscribe(self, fresh: Handler, again: Handler) -> None:
        from faststream.rabbit import Channel

        # The retry queue first: new messages may be moved there at once.
        alone = Channel(prefetch_count=1)
        self.native.subscriber(self._queue(self.retry), channel=alone)(again)
        self.native.subscriber(self._queue(self.queue))(fresh)

    async def connect(self) -> None:
        # Where this is cancelled, aio-pika would try again for ever. It gives up by itself.
        connecting = asyncio.ensure_future(self.native.connect())
        try:
            await asyncio.shield(connecting)
        except asyncio.CancelledError:
            connecting.add_done_callback(_close)
            raise
        # faststream consumes a queue on the channel that declared it first. Queues with subscribers
        # are declared by them: declared here, they would all use the default channel with its
        # prefetch count, and redelivered jobs would be evaluated several at once.
        names = [self.dead] if self.native.subscribers else [self.queue, self.retry, self.dead]
        for name in names:
            await self.native.declare_queue(self._queue(name))

    async def publish(self, body: bytes, to: str) -> None:
        kept = {"persist": True, "content_type": "application/json"}
        await self.native.publish(body, queue=to, timeout=self.timeout, **kept)

    async def deliveries(self, message: Any) -> int:
        raw = message.raw_message
        count = raw.headers.get("x-delivery-count", int(bool(raw.redelivered)))
        return 1 + (count if isinstance(count, int) else 0)

    async def dead_messages(self) -> list[DeadMessage]:
        from aiormq.exceptions import ChannelLockedResource
        from faststream.rabbit import RabbitQueue

        await self.open()
        # A lock for readers: another one would not see the messages that this one has taken. The
        # queue disappears with its reader's connection.
        turn = RabbitQueue(f"{self.dead}.reader", exclusive=True)
        try:
            async with asyncio.timeout(self.timeout):
                while True:
                    with suppress(ChannelLockedResource):
                        await self.native.declare_queue(turn)
                        break
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise BrokerUnavailableError(
                "another command is reading the dead letters: try again when it has ended"
            ) from None
        queue = await self.native.declare_queue(self._queue(self.dead))
        taken = []
        try:
            while (message := await queue.get(fail=False, timeout=self.timeout)) is not None:
                taken.append(message)
        except TimeoutError:
            raise BrokerUnavailableError(
                f"RabbitMQ runs, but its queue {self.dead} does not answer: `rabbitmq-queues "
                f"quorum_status {self.dead}` says whether it has a leader"
            ) from None
        # Those that are not acknowledged return to the queue with the end of the connection.
        return [(each.body, each.ack) for each in taken]


def _close(connecting: asyncio.Future[Any]) -> None:
    if connecting.cancelled():
        return
    if (error := connecting.exception()) is not None:
        free_frames(error)
    else:
        _CLOSING.add(closing := asyncio.ensure_future(connecting.result().close()))
        closing.add_done_callback(_CLOSING.discard)


_CLOSING: set[asyncio.Future[None]] = set()


class _Nats(Broker):
    """NATS: one JetStream stream with the queue's name, a subject for each queue."""

    name = "nats"

    def _native(self, url: str, **options: Any) -> Any:
        from faststream.nats import JStream, NatsBroker
        from nats.js.api import RetentionPolicy, StorageType

        self._stream = JStream(
            "".join(c if c.isalnum() or c in "-_" else "_" for c in self.queue),
            subjects=[self.queue, self.retry, self.dead],
            retention=RetentionPolicy.WORK_QUEUE,
            storage=StorageType.FILE,
        )
        options |= {"reconnect_time_wait": 1, "max_reconnect_attempts": -1}
        native = NatsBroker(url, connect_timeout=max(1, int(self.timeout)), **options)
        native.publisher(self.queue, stream=self._stream)  # has the stream made
        return native

    def subscribe(self, fresh: Handler, again: Handler) -> None:
        from faststream.nats import PullSub
        from nats.js.api import ConsumerConfig

        for subject, at_once, take in (self.queue, self.concurrency, fresh), (self.retry, 1, again):
            self.native.subscriber(
                subject,
                stream=self._stream,
                durable="".join(c if c.isalnum() else "_" for c in subject),
                config=ConsumerConfig(ack_wait=self.hold, max_ack_pending=10_000),
                pull_sub=PullSub(batch_size=1, timeout=1.0),
                max_workers=at_once,
            )(take)

    async def connect(self) -> None:
        await self.native.connect()
        if not self.native.subscribers:
            await self.native.start()

    async def publish(self, body: bytes, to: str) -> None:
        await self.native.publish(body, to, stream=self._stream.name, timeout=self.timeout)

    async def deliveries(self, message: Any) -> int:
        return int(message.raw_message.metadata.num_delivered)

    async def dead_messages(self) -> list[DeadMessage]:
        from nats.js.errors import APIError, NotFoundError

        await self.open()
        # Read the stream without a consumer, which gives a message to one reader at a time and
        # cannot distinguish a slow broker from the last message.
        stream, name = (await self.native.connect()).jsm(), self._stream.name

        async def discard(number: int) -> None:
            try:
                await stream.delete_msg(name, number)
            except APIError:  # which one depends on what is left of the stream
                with suppress(NotFoundError):  # another reader was faster
                    await stream.get_msg(name, seq=number)
                    raise

        taken: list[DeadMessage] = []
        number = 0
        with suppress(NotFoundError):
            while True:
                found = await stream.get_msg(name, seq=number + 1, subject=self.dead, next=True)
                number = found.seq
                taken.append((found.data or b"", partial(discard, number)))
        return taken


class _Kafka(Broker):
    """Kafka: topics, one job at a time for each partition; no count of deliveries."""

    name = "kafka"
    returns_to_queue = False

    def _native(self, url: str, **options: Any) -> Any:
        from faststream.kafka import KafkaBroker

        hosts = url.removeprefix("kafka://").rstrip("/")
        if "@" in hosts or not hosts:
            raise ConfigurationError(
                "the broker: write it as kafka://host:9092,host:9092; users and passwords in the "
                "address are not supported"
            )
        options |= {"acks": "all", "request_timeout_ms": int(self.timeout * 1000)}
        return KafkaBroker(hosts.split(","), **options)

    def subscribe(self, fresh: Handler, again: Handler) -> None:  # noqa: ARG002 - nothing counts
        self.native.subscriber(
            self.queue,
            group_id=self.queue,
            auto_offset_reset="earliest",
            max_workers=self.concurrency,
            max_poll_interval_ms=int(self.hold * 1000),
        )(fresh)

    async def connect(self) -> None:
        await self.native.start()

    async def publish(self, body: bytes, to: str) -> None:
        await self.native.publish(body, topic=to)

    async def dead_messages(self) -> list[DeadMessage]:
        raise ConfigurationError(
            f"Kafka keeps dead letters in the topic {self.dead} for as long as the topic is set "
            "to; read them with Kafka's own tools"
        )


_KINDS: dict[str, type[Broker]] = {
    **dict.fromkeys(("redis", "rediss"), _Redis),
    **dict.fromkeys(("amqp", "amqps"), _Rabbit),
    **dict.fromkeys(("nats", "tls"), _Nats),
    "kafka": _Kafka,
}


def broker_at(given: str | None, **options: Any) -> Broker:
    """Broker at an address, else at `RAGALIQ_BROKER_URL`; not connected yet.

    Raises:
        ConfigurationError: There is no address, its broker is not supported, it cannot be used, or
            a library is not installed.
    """
    url = given or os.environ.get(ENV_BROKER_URL, "")
    if not url:
        raise ConfigurationError(
            f"no broker: name it, or set {ENV_BROKER_URL}, such as redis://localhost:6379/0"
        )
    kind = _KINDS.get(url.partition("://")[0])
    if kind is None:
        # Not shown: it may hold a password.
        raise ConfigurationError(
            f"{'the broker' if given else ENV_BROKER_URL}: the address must begin with "
            f"{'://, '.join(_KINDS)}://; this one, of {len(url)} characters, does not"
        )
    try:
        return kind(url, **options)
    except ConfigurationError:
        raise
    except ImportError:
        raise ConfigurationError(
            f"this broker needs more libraries: pip install 'ragaliq[{kind.name}]'"
        ) from None
    except Exception as error:  # noqa: BLE001 - each part of an address is refused in another way
        raise ConfigurationError(
            f"the broker: the address cannot be used ({type(error).__name__})"
        ) from None


def free_frames(error: BaseException | None) -> None:
    """Free what the frames of a failed attempt hold, on the loop where it was made.

    aio-pika's connections close themselves there as they are freed. The garbage collector would
    free them in any thread, where that fails with a warning.
    """
    while error is not None:
        clear_frames(error.__traceback__)
        error = error.__context__


def unavailable(error: Exception) -> BrokerUnavailableError:
    """Error that replaces a client's, whose message may contain the broker's address."""
    if reason := untrusted_certificate(error):
        return BrokerUnavailableError(f"the broker {reason}")
    return BrokerUnavailableError(
        f"the broker cannot be reached ({type(error).__name__}): is it running, and is "
        "--broker or RAGALIQ_BROKER_URL its address?"
    )
