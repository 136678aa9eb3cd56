"""The batch endpoints, with their failures sorted by what to do next."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, NamedTuple

import anthropic
import httpx2
from anthropic.types.messages import MessageBatch
from anthropic.types.messages.batch_create_params import Request

from ragaliq.errors import JudgeAPIError, JudgeError
from ragaliq.judges.claude.errors import request_failed

__all__ = [
    "BatchApi",
    "BatchState",
    "LaterError",
    "NotTakenError",
    "RefusedError",
    "UnknownBatchError",
    "UnsureError",
]

# Says nothing about the request itself; these come before anything is done with it.
_NOT_NOW = {429, 529}
_TOO_LONG = {408, 409}
_DENIED = {400, 401, 402, 403}
# The SDK hands over the response with its body still to be read.
_STREAMED = {"X-Stainless-Raw-Response": "stream"}
_PER_PAGE = 100


class NotTakenError(Exception):
    """The batch was certainly not made; sending it later may help."""


class RefusedError(Exception):
    """The batch was certainly not made, and will not be.

    Args:
        status: HTTP status.
    """

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


class UnsureError(Exception):
    """Whether the batch was made is not known."""


class UnknownBatchError(Exception):
    """The API knows no such batch."""


class LaterError(Exception):
    """Asking again later may help.

    Args:
        failure: What happened, for whoever waits.
    """

    def __init__(self, failure: JudgeError) -> None:
        super().__init__(str(failure))
        self.failure = failure


class BatchState(NamedTuple):
    """A batch as the API sees it.

    Attributes:
        batch_id: The API's name for it.
        has_ended: Whether its results can be had.
        created_at: Unix time.
        size: Requests in it.
    """

    batch_id: str
    has_ended: bool
    created_at: float
    size: int


class BatchApi:
    """Asks the API about batches.

    Args:
        client: Gives the running loop's client.
        model: For messages.
    """

    def __init__(
        self, client: Callable[[], Awaitable[anthropic.AsyncAnthropic]], *, model: str
    ) -> None:
        self._client, self._model = client, model

    async def create(self, requests: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
        """Send a batch, once; its id.

        Raises:
            NotTakenError: It was not made, for now.
            RefusedError: It was not made.
            UnsureError: Nobody knows.
        """
        client = await self._client()
        body = [Request(custom_id=name, params=params) for name, params in requests]  # type: ignore[typeddict-item]
        try:
            # Not repeated by the SDK: the first attempt may have made a batch, and a second one
            # would be paid for as well.
            batch = await client.with_options(max_retries=0).messages.batches.create(requests=body)
        except anthropic.APIStatusError as error:
            status = error.status_code
            if status in _NOT_NOW:
                raise NotTakenError from None
            if status >= 500 or status in _TOO_LONG:
                raise UnsureError from None
            raise RefusedError(status) from None
        except anthropic.APIConnectionError as error:
            if isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout):
                raise NotTakenError from None
            raise UnsureError from None
        except (anthropic.AnthropicError, ValueError):
            raise UnsureError from None
        batch_id = getattr(batch, "id", None)
        if not isinstance(batch_id, str) or not batch_id:
            raise UnsureError
        return batch_id

    async def state(self, batch_id: str) -> BatchState:
        """How far a batch is.

        Raises:
            UnknownBatchError: There is none of this id.
            LaterError: It could not be asked.
            JudgeAPIError: It may not be asked.
        """
        client = await self._client()
        try:
            return _state(await client.messages.batches.retrieve(batch_id))
        except anthropic.NotFoundError:
            raise UnknownBatchError from None
        except (anthropic.AnthropicError, ValueError) as error:
            failure = self._failed(error)
        raise failure

    async def made_since(self, moment: float) -> list[BatchState]:
        """The batches made since then, whoever made them.

        Raises:
            LaterError: It could not be asked.
            JudgeAPIError: It may not be asked.
        """
        client = await self._client()
        found = []
        try:
            async for batch in client.messages.batches.list(limit=_PER_PAGE):
                state = _state(batch)
                if state.created_at < moment:
                    break
                found.append(state)
        except (anthropic.AnthropicError, ValueError) as error:
            failure = self._failed(error)
        else:
            return found
        raise failure

    async def results(self, batch_id: str) -> AsyncIterator[bytes]:
        """The lines of a batch's results, as they arrive.

        Raises:
            UnknownBatchError: They are not there.
            LaterError: They could not be had, or not all of them.
            JudgeAPIError: They may not be had.
        """
        client = await self._client()
        failure: Exception
        try:
            # Not by the address in the batch: the key goes to nobody but the one it was given for.
            response = await client.get(
                f"/v1/messages/batches/{batch_id}/results",
                cast_to=httpx2.Response,
                options={"headers": {"Accept": "application/binary", **_STREAMED}},
            )
            try:
                async with aclosing(_lines(response.aiter_bytes())) as lines:
                    async for line in lines:
                        yield line
            finally:
                await response.aclose()
        except anthropic.NotFoundError:
            raise UnknownBatchError from None
        except httpx2.HTTPError:
            failure = LaterError(JudgeAPIError("the results of a batch were cut off"))
        except (anthropic.AnthropicError, ValueError) as error:
            failure = self._failed(error)
        else:
            return
        raise failure

    async def cancel(self, batch_id: str) -> None:
        """Have a batch end early.

        Raises:
            JudgeAPIError: It could not be done.
        """
        client = await self._client()
        try:
            await client.messages.batches.cancel(batch_id)
        except anthropic.NotFoundError:
            return
        except (anthropic.AnthropicError, ValueError) as error:
            failure = self._failed(error)
        else:
            return
        raise failure.failure if isinstance(failure, LaterError) else failure

    def _failed(self, error: Exception) -> JudgeError | LaterError:
        if not isinstance(error, anthropic.AnthropicError):
            return JudgeAPIError("what answers is not the Message Batches API; check base_url=")
        failure = request_failed(error, self._model, None)
        if isinstance(error, anthropic.APIStatusError) and error.status_code in _DENIED:
            return failure
        return LaterError(failure)


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            if line.strip():
                yield line
    if rest.strip():
        yield rest


def _state(batch: MessageBatch) -> BatchState:
    # The SDK builds its types without checking them.
    status, batch_id = getattr(batch, "processing_status", None), getattr(batch, "id", None)
    if not isinstance(status, str) or not isinstance(batch_id, str):
        raise ValueError("no batch")  # noqa: TRY004 - as for JSON that cannot be read
    created, counts = getattr(batch, "created_at", None), getattr(batch, "request_counts", None)
    numbers = vars(counts).values() if counts is not None else ()
    return BatchState(
        batch_id=batch_id,
        has_ended=status == "ended",
        created_at=created.timestamp() if isinstance(created, datetime) else time.time(),
        size=sum(number for number in numbers if isinstance(number, int)),
    )
