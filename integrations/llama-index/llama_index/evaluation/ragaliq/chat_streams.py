"""Answers that a chat engine streams.

Most engines read the model's stream themselves, in a thread or task of their own, to write it to
their history, and hand the tokens on through a queue; others leave the reading to the application.
"""

from __future__ import annotations

from llama_index.core.base.llms.types import ChatResponse
from llama_index.core.chat_engine.types import StreamingAgentChatResponse

from llama_index.evaluation.ragaliq.finish import Finisher
from llama_index.evaluation.ragaliq.run_state import Run, RunRegistry, Written
from llama_index.evaluation.ragaliq.streams import (
    StreamListener,
    afollow,
    failure_reason,
    follow,
)

__all__ = ["ChatStreams"]


class ChatStreams:
    """Brings together a run and the stream with its answer, whichever comes first.

    Args:
        runs: The runs in progress.
        finisher: Ends them.
    """

    def __init__(self, runs: RunRegistry, finisher: Finisher) -> None:
        self._runs = runs
        self._finisher = finisher

    def started(self, stream: StreamingAgentChatResponse, run: Run | None) -> None:
        """An engine begins to read its stream, perhaps after it was returned.

        Args:
            stream: What is read.
            run: The run it is read in, if that is still known.
        """
        run = run or self._runs.awaiting(stream)
        if run is not None:
            _follow(stream, _WriteListener(run, stream, self))

    def ended(self, stream: object, error: BaseException | None = None) -> None:
        """An engine's reading has ended; of use only when its start was missed."""
        run = self._runs.awaiting(stream)
        if run is None or not isinstance(stream, StreamingAgentChatResponse):
            return
        if error is not None:
            self._finisher.discard(run, failure_reason(error))
        elif stream.response:
            self._finisher.submit(run, stream)

    def returned(self, run: Run, stream: StreamingAgentChatResponse) -> None:
        """The root has given the stream to the application."""
        if not stream.is_writing_to_memory:
            _follow(stream, self._finisher.listener(run, stream))
            return
        # The reading may have ended before this moment. Whoever comes second finds the run ended.
        self._runs.await_stream(run, stream)
        if run.written is not None:
            self.written(run, run.written)
        elif stream.is_done:
            self.ended(stream, stream.exception)

    def written(self, run: Run, written: Written) -> None:
        """A stream of the run has been read; its answer counts once the root has returned it."""
        run.written = written
        if run.stream is not written.stream:
            return
        listener = self._finisher.listener(run, written.stream)
        if written.failure:
            listener.broken(written.failure)
        else:
            listener.complete(written.answer)

    def failed(self, run: Run, error: Exception) -> None:
        """A stream was read that cannot be made out."""
        self._finisher.failed(run, error)


class _WriteListener:
    def __init__(self, run: Run, stream: StreamingAgentChatResponse, streams: ChatStreams) -> None:
        self._run = run
        self._stream = stream
        self._streams = streams

    def complete(self, answer: str) -> None:
        self._written(Written(self._stream, answer=answer))

    def broken(self, reason: str) -> None:
        self._written(Written(self._stream, failure=reason))

    def _written(self, written: Written) -> None:
        try:
            self._streams.written(self._run, written)
        except Exception as error:  # noqa: BLE001 - whoever reads the stream must not notice
            self._streams.failed(self._run, error)


def _follow(stream: StreamingAgentChatResponse, listener: StreamListener) -> None:
    if stream.chat_stream is not None:
        stream.chat_stream = follow(stream.chat_stream, listener, text=_delta)
    if stream.achat_stream is not None:
        stream.achat_stream = afollow(stream.achat_stream, listener, text=_delta)


def _delta(response: ChatResponse) -> str:
    return response.delta or ""
