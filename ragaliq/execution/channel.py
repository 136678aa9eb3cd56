"""JSON messages between two processes: four bytes of length, then the text."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any

__all__ = ["Channel", "Message"]

Message = dict[str, Any]

_LENGTH = struct.Struct(">I")
_AT_ONCE = 1 << 16


class Channel:
    """One end of a socket pair, used on one event loop.

    Args:
        end: The connected socket; the channel's from now on.
    """

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)  # noqa: FBT003 - the name says it
        self._end = end
        self._unread = bytearray()
        self._sending = asyncio.Lock()

    async def send(self, message: Message) -> None:
        """Send a message whole.

        Raises:
            OSError: The other side is gone.
        """
        # The json module and not pydantic's: text may hold lone surrogates, scores may be NaN.
        text = json.dumps(message).encode("ascii")
        async with self._sending:
            try:
                loop = asyncio.get_running_loop()
                await loop.sock_sendall(self._end, _LENGTH.pack(len(text)) + text)
            except BaseException:
                self.hang_up()  # after half a message nothing that follows could be read
                raise

    async def receive(self) -> Message | None:
        """The next message; None when there will be no more.

        Raises:
            ValueError: What came is no message.
        """
        header = await self._take(_LENGTH.size)
        text = header and await self._take(_LENGTH.unpack(header)[0])
        if not text:
            return None
        message = json.loads(text)
        if not isinstance(message, dict):
            raise ValueError("a message is a JSON object")  # noqa: TRY004 - wrong data, not code
        return message

    def hang_up(self) -> None:
        """Let both sides see the end; `close` must still follow."""
        try:
            self._end.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # the other side was faster

    def close(self) -> None:
        """Give the socket back; nothing may be waiting on it any more."""
        self._end.close()

    async def _take(self, size: int) -> bytes | None:
        loop = asyncio.get_running_loop()
        while len(self._unread) < size:
            try:
                came = await loop.sock_recv(self._end, _AT_ONCE)
            except OSError:  # the other side died with something unread
                return None
            if not came:
                return None
            self._unread += came
        taken = bytes(self._unread[:size])
        del self._unread[:size]
        return taken
