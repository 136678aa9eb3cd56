"""A guard around a query engine."""

from __future__ import annotations

import dataclasses
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index.evaluation.ragaliq.guarding import Attempts
from llama_index.evaluation.ragaliq.responses import aread_answer, read_answer
from ragaliq import ConfigurationError, Guard

__all__ = ["GuardedQueryEngine", "guard_of"]


def guard_of(guard: Guard | None, options: dict[str, Any]) -> Guard:
    """The guard given, or one made from `options`.

    Raises:
        ConfigurationError: Both were given, or an option is wrong.
    """
    if guard is not None and options:
        raise ConfigurationError(f"give a guard or its options, not both: {sorted(options)}")
    return guard if guard is not None else Guard(**options)


class GuardedQueryEngine(BaseQueryEngine):
    """A query engine whose answers are checked before they go out.

        engine = GuardedQueryEngine(index.as_query_engine(), judge="claude", action="retry")

    An answer below is replaced, gets the result in its `metadata["ragaliq"]`, is made again with
    feedback, or raises `GuardRejected`, according to the guard's `action`. A stream is held back
    until the answer is judged, and then comes in one piece.

    For another attempt the feedback is appended to the question; what is embedded for retrieval
    stays the question alone. An answer that the guard has judged is not scored again by an
    attached handler.

    Args:
        engine: What is guarded.
        guard: Decides; built from `options` when not given.
        pipeline: The application's name for the engine.
        **options: Arguments of `ragaliq.Guard`.

    Raises:
        ConfigurationError: A setting is wrong.
    """

    def __init__(
        self,
        engine: BaseQueryEngine,
        guard: Guard | None = None,
        *,
        pipeline: str = "",
        **options: Any,
    ) -> None:
        super().__init__(callback_manager=engine.callback_manager)
        self.guard = guard_of(guard, options)
        self._engine = engine
        self._pipeline = pipeline

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """What the guarded engine retrieves."""
        return self._engine.retrieve(query_bundle)

    def _get_prompt_modules(self) -> PromptMixinType:
        return {"engine": self._engine}

    def _query(self, query_bundle: QueryBundle) -> Any:
        attempts = Attempts(self.guard, query_bundle.query_str, pipeline=self._pipeline)
        response = self._engine.query(query_bundle)
        while not self.guard.is_off:
            answer = read_answer(response)
            case = attempts.case(answer, response)
            result = None if case is None else self.guard.check(case, **attempts.origin)
            if not attempts.go_on(result):
                return attempts.outgoing(response, answer)[0]
            response = self._engine.query(_with_feedback(query_bundle, attempts.feedback))
        return response

    async def _aquery(self, query_bundle: QueryBundle) -> Any:
        attempts = Attempts(self.guard, query_bundle.query_str, pipeline=self._pipeline)
        response = await self._engine.aquery(query_bundle)
        while not self.guard.is_off:
            answer = await aread_answer(response)
            case = attempts.case(answer, response)
            result = None if case is None else await self.guard.acheck(case, **attempts.origin)
            if not attempts.go_on(result):
                return attempts.outgoing(response, answer)[0]
            response = await self._engine.aquery(_with_feedback(query_bundle, attempts.feedback))
        return response


def _with_feedback(query: QueryBundle, feedback: str) -> QueryBundle:
    return dataclasses.replace(
        query,
        query_str=f"{query.query_str}\n\n{feedback}",
        custom_embedding_strs=query.custom_embedding_strs or [query.query_str],
    )
