"""The end of a run: handed to the monitor, or counted with the reason why not."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse

from llama_index.evaluation.ragaliq.faults import FaultLog
from llama_index.evaluation.ragaliq.overrides import Extract, Facts, facts_of
from llama_index.evaluation.ragaliq.reading import (
    answer_of,
    passages_of,
    sources_of,
)
from llama_index.evaluation.ragaliq.run_state import Run, RunRegistry
from llama_index.evaluation.ragaliq.scope import Scope
from llama_index.evaluation.ragaliq.streams import StreamListener, afollow, follow
from ragaliq import CaseDraft, Passage

__all__ = ["Finisher", "context_of"]


_NOTHING = Facts()


def context_of(scope: Scope, payload: Any) -> list[Passage] | None:
    """What an engine answered from, given what it returned; None if nothing was retrieved."""
    return scope.context(lambda: passages_of(sources_of(payload)))


class Finisher:
    """Ends runs, each exactly once.

    Args:
        runs: The runs in progress.
        faults: Told of failures.
        extract: The application's own word on its runs, if it has any.
    """

    def __init__(self, runs: RunRegistry, faults: FaultLog, extract: Extract | None) -> None:
        self._runs = runs
        self._faults = faults
        self._extract = extract

    def finish(self, run: Run, payload: Any) -> None:
        """End a run with what its root returned, or follow the stream that brings the answer."""
        if isinstance(payload, StreamingResponse) and payload.response_txt is None:
            listener = self.listener(run, payload)
            payload.response_gen = follow(payload.response_gen, listener, text=str)
        elif isinstance(payload, AsyncStreamingResponse) and payload.response_txt is None:
            listener = self.listener(run, payload)
            payload.response_gen = afollow(payload.response_gen, listener, text=str)
        else:
            self.submit(run, payload)

    def submit(self, run: Run, payload: Any) -> None:
        """End a run whose answer is complete."""
        self.listener(run, payload).complete(answer_of(payload))

    def discard(self, run: Run, reason: str) -> None:
        """End a run that cannot be evaluated."""
        self._runs.claim(run)
        run.ticket.discard(reason)

    def failed(self, run: Run, error: Exception) -> None:
        """End a run that ragaliq cannot make out."""
        self._faults.note(error)
        self.discard(run, "internal_error")

    def withdraw(self, run: Run) -> None:
        """End a run whose answer a guard has scored."""
        self._runs.claim(run)
        run.ticket.withdraw()

    def hand_over(self, run: Run, answer: str, context: list[Passage] | None) -> None:
        """Give a run with its answer to the monitor; does not raise.

        Args:
            run: The run.
            answer: May be empty.
            context: None if nothing was retrieved at all, which is no RAG.
        """
        if not self._runs.claim(run):
            return
        if run.guarded and answer.strip() in run.guarded:
            run.ticket.withdraw()
            return
        said = self._said(run)
        if said is None:
            run.ticket.discard("extract_failed")
            return
        question, answer = said.question or run.question, said.answer or answer
        context = context if said.context is None else said.context
        reason = _missing(question, answer, context)
        if reason:
            run.ticket.discard(reason)
            return
        case = CaseDraft(
            id=run.id,
            query=question,
            passages=context or (),
            response=answer,
            tags=run.tags,
            had_errors=run.had_errors,
        )
        run.ticket.submit(case, target=run.target, session_id=run.session_id)

    def _said(self, run: Run) -> Facts | None:
        if self._extract is None:
            return _NOTHING
        try:
            return facts_of(self._extract(run.inputs, run.outputs))
        except Exception as error:  # noqa: BLE001 - the application's own code may do anything
            self._faults.extract_failed(error)
            return None
        except BaseException:
            # Something from outside, such as Ctrl-C, while the function ran: the run ends with it.
            run.ticket.discard("interrupted")
            raise

    def listener(self, run: Run, payload: Any) -> StreamListener:
        """Ends the run with a streamed answer; reads the context off `payload` now."""
        return _AnswerListener(run, context_of(run.scope, payload), self)


class _AnswerListener:
    """Ends a run with the answer that is being streamed; see `streams.StreamListener`."""

    def __init__(self, run: Run, context: list[Passage] | None, finisher: Finisher) -> None:
        self._run = run
        self._context = context
        self._finisher = finisher

    def complete(self, answer: str) -> None:
        try:
            self._finisher.hand_over(self._run, answer, self._context)
        except Exception as error:  # noqa: BLE001 - whoever reads the stream must not notice
            self._finisher.failed(self._run, error)

    def broken(self, reason: str) -> None:
        self._finisher.discard(self._run, reason)


def _missing(question: str, answer: str, context: list[Passage] | None) -> str:
    if context is None:
        return "not_rag"
    if not question.strip():
        return "no_question"
    return "" if answer.strip() else "no_answer"
