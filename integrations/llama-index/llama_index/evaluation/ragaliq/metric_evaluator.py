"""A ragaliq metric behind LlamaIndex's evaluator interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from llama_index.core.evaluation import BaseEvaluator
from llama_index.core.prompts.mixin import PromptDictType

from llama_index.evaluation.ragaliq.responses import aread_answer, read_answer, read_context
from llama_index.evaluation.ragaliq.results import (
    RagaliqEvaluationResult,
    from_ragaliq,
    invalid,
    texts_of,
)
from ragaliq import (
    ConfigurationError,
    ContextChunk,
    Evaluator,
    JudgeSpec,
    RagaliqError,
    RAGTestCase,
    ScoringPolicy,
    Status,
    resolve_judge,
    suppress,
)

__all__ = ["MetricEvaluator"]

Contexts = Sequence[str | ContextChunk]


class MetricEvaluator(BaseEvaluator):
    """A ragaliq metric behind LlamaIndex's interface.

    Nothing but a wrong setting raises: where there is no score the result has
    `invalid_result=True`. `BatchEvalRunner` answers an exception with seconds of waiting and, in
    the end, the loss of the whole batch.

    Args:
        judge: `local` (embedded, no key, no network), `claude`, or a judge of your own.
        threshold: Score from which on an answer passes, 0 to 1; the metric's default when None.
        policy: What to do in awkward cases; by default they get a status and no score.
        **options: Further arguments of the ragaliq evaluator of the same name.

    Raises:
        ConfigurationError: A setting is wrong, or the judge cannot be built.
    """

    metric_class: ClassVar[type[Evaluator]]
    """ragaliq's evaluator."""
    inputs: ClassVar[tuple[str, ...]]
    """What must be given, of `query`, `response` and `contexts`."""

    def __init__(
        self,
        judge: JudgeSpec = "local",
        *,
        threshold: float | None = None,
        policy: ScoringPolicy = ScoringPolicy.LIVE,
        **options: Any,
    ) -> None:
        self.judge = resolve_judge(judge)
        self._metric = self.metric_class(threshold, policy=policy, **options)

    @property
    def threshold(self) -> float:
        """The score from which on an answer passes."""
        return self._metric.threshold

    def evaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Contexts | None = None,
        **kwargs: Any,
    ) -> RagaliqEvaluationResult:
        """Score an answer; works inside a running event loop too.

        Args:
            query: The question.
            response: The answer.
            contexts: What it was made from: strings, or chunks with ids.
            **kwargs: Accepted and ignored, as LlamaIndex hands evaluators more than they ask for.

        Returns:
            The score and its reasons, or an invalid result that says why there is none.
        """
        case = self._case(query, response, contexts)
        if isinstance(case, RagaliqEvaluationResult):
            return case
        try:
            # A judge may itself be built on LlamaIndex: its calls are nobody's traffic.
            with suppress():
                return from_ragaliq(case, self._metric.evaluate_sync(case, self.judge))
        except Exception as error:  # noqa: BLE001 - see the class
            return self._failed(case, error)

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Contexts | None = None,
        **kwargs: Any,
    ) -> RagaliqEvaluationResult:
        """`evaluate` for asynchronous code."""
        case = self._case(query, response, contexts)
        if isinstance(case, RagaliqEvaluationResult):
            return case
        try:
            with suppress():
                return from_ragaliq(case, await self._metric.evaluate(case, self.judge))
        except Exception as error:  # noqa: BLE001 - see the class
            return self._failed(case, error)

    def evaluate_response(
        self, query: str | None = None, response: Any | None = None, **kwargs: Any
    ) -> RagaliqEvaluationResult:
        """Score a response object.

        Args:
            query: The question.
            response: What a query or chat engine returned. A stream is read to its end.
            **kwargs: Accepted and ignored.
        """
        if response is None:
            return self.evaluate(query, None, None, **kwargs)
        try:
            answer, contexts = read_answer(response), read_context(response)
        except Exception as error:  # noqa: BLE001 - see the class
            return self._unreadable(query, error)
        return self.evaluate(query, answer, contexts, **kwargs)

    async def aevaluate_response(
        self, query: str | None = None, response: Any | None = None, **kwargs: Any
    ) -> RagaliqEvaluationResult:
        """`evaluate_response` for asynchronous code."""
        if response is None:
            return await self.aevaluate(query, None, None, **kwargs)
        try:
            answer, contexts = await aread_answer(response), read_context(response)
        except Exception as error:  # noqa: BLE001 - see the class
            return self._unreadable(query, error)
        return await self.aevaluate(query, answer, contexts, **kwargs)

    def _get_prompts(self) -> PromptDictType:
        # The prompts are the judge's, not LlamaIndex templates; a local judge has none at all.
        return {}

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        if prompts_dict:
            raise ConfigurationError(
                f"{type(self).__name__} has no prompt {', '.join(sorted(prompts_dict))}; prompts "
                "belong to the judge: pass one built with its own, such as ClaudeJudge(prompts=...)"
            )

    def _case(
        self, query: str | None, response: str | None, contexts: Contexts | None
    ) -> RAGTestCase | RagaliqEvaluationResult:
        given = {"query": query, "response": response, "contexts": contexts}
        missing = [name for name in self.inputs if given[name] is None]
        if not missing and not (response or "").strip():
            missing = ["response"]
        if missing or response is None:
            return self._invalid(
                f"missing input: {self._metric.name} needs {' and '.join(missing)}",
                query=query,
                response=response,
                contexts=texts_of(contexts),
            )
        try:
            return RAGTestCase(query=query or "", context=list(contexts or ()), response=response)
        except ValueError as error:
            return self._invalid(
                f"malformed input: {type(error).__name__}",
                query=query,
                error_type=type(error).__name__,
            )

    def _failed(self, case: RAGTestCase, error: Exception) -> RagaliqEvaluationResult:
        # An error of the judge's own, unlike ragaliq's, may quote what was judged.
        said = f": {error}" if isinstance(error, RagaliqError) else ""
        return self._invalid(
            f"{Status.JUDGE_ERROR.value}: {type(error).__name__}{said}",
            query=case.query or None,
            response=case.response,
            contexts=case.context_texts,
            status=Status.JUDGE_ERROR,
            error_type=type(error).__name__,
        )

    def _unreadable(self, query: str | None, error: Exception) -> RagaliqEvaluationResult:
        name = type(error).__name__
        return self._invalid(f"unreadable response: {name}", query=query, error_type=name)

    def _invalid(self, reason: str, **fields: Any) -> RagaliqEvaluationResult:
        return invalid(
            reason, evaluator_name=self._metric.name, threshold=self._metric.threshold, **fields
        )
