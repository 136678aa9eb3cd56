"""ragaliq's metrics as LlamaIndex evaluators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from llama_index.core.evaluation import BaseEvaluator
from llama_index.core.evaluation import EvaluationResult as LlamaIndexResult
from llama_index.core.llms import LLM
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.schema import BaseNode, NodeWithScore

import ragaliq
from llama_index.evaluation.ragaliq.judge import judge_of
from llama_index.evaluation.ragaliq.reading import (
    aread_answer,
    at_once,
    passages_of,
    read_answer,
    sources_of,
    text_of,
    value_of,
)
from ragaliq import (
    ClaimDetail,
    ConfigurationError,
    ContextChunk,
    EvaluationResult,
    Evaluator,
    JudgeSpec,
    JudgeUsage,
    RagaliqError,
    RAGTestCase,
    ScoringPolicy,
    Status,
    context_chunks,
    resolve_judge,
    suppress,
)

__all__ = [
    "ChunkUtilityEvaluator",
    "ContextPrecisionEvaluator",
    "ContextRecallEvaluator",
    "CorrectnessEvaluator",
    "FaithfulnessEvaluator",
    "HallucinationEvaluator",
    "RagaliqEvaluationResult",
    "RelevancyEvaluator",
]

Contexts = str | Sequence[str | ContextChunk | NodeWithScore | BaseNode]


class RagaliqEvaluationResult(LlamaIndexResult):
    """An evaluation as LlamaIndex expects it, and its claims, status and cost.

    LlamaIndex's own class drops fields it does not know, hence the subclass. When there is no
    score, `invalid_result` is True and `invalid_reason` begins with the status.

    Attributes:
        evaluator_name: The metric, such as `faithfulness`.
        status: How the evaluation ended; None when an input was missing and nothing was asked.
        threshold: The score from which on an answer passes.
        claims: Claim by claim, for claim-based metrics. `supporting_chunk_ids` are node ids where
            the evaluator was given nodes, positions where it was given strings.
        usage: Tokens, requests and money the judge cost.
        judge: Name of the judge that decided.
        model: The judge's model, when it has one.
        error_type: Class of the error, for failures.
    """

    evaluator_name: str = ""
    status: Status | None = None
    threshold: float | None = None
    claims: tuple[ClaimDetail, ...] = ()
    usage: JudgeUsage = JudgeUsage()
    judge: str = ""
    model: str | None = None
    error_type: str | None = None


class _MetricEvaluator(BaseEvaluator):
    """A ragaliq metric behind LlamaIndex's interface.

    Nothing but a wrong setting raises: where there is no score the result has
    `invalid_result=True`. `BatchEvalRunner` answers an exception with seconds of waiting and, in
    the end, the loss of the whole batch.

    Args:
        judge: `local` (embedded, no key, no network; the default), `claude`, a judge of your own,
            or one of LlamaIndex's models.
        llm: The same as `judge`, under LlamaIndex's name for it.
        threshold: Score from which on an answer passes, 0 to 1; the metric's default when None.
        policy: What to do in awkward cases; by default they get a status and no score.
        **options: Further arguments of the ragaliq evaluator of the same name.

    Raises:
        ConfigurationError: A setting is wrong, or the judge cannot be built.
    """

    metric_class: ClassVar[type[Evaluator]]
    """ragaliq's evaluator."""
    inputs: ClassVar[tuple[str, ...]]
    """Arguments that must be given, of `query`, `response`, `contexts` and `reference`."""

    def __init__(
        self,
        judge: JudgeSpec | LLM | None = None,
        *,
        llm: LLM | None = None,
        threshold: float | None = None,
        policy: ScoringPolicy = ScoringPolicy.LIVE,
        **options: Any,
    ) -> None:
        if judge is not None and llm is not None:
            raise ConfigurationError(f"{type(self).__name__}: give judge or llm, not both")
        self.judge = resolve_judge(judge_of(llm if judge is None else judge) or "local")
        self._metric = self.metric_class(threshold, policy=policy, **options)
        self._metric.require(self.judge)

    @property
    def threshold(self) -> float:
        """The score from which on an answer passes."""
        return self._metric.threshold

    def evaluate(
        self,
        query: Any | None = None,
        response: Any | None = None,
        contexts: Contexts | None = None,
        *,
        reference: str | Sequence[str] | None = None,
        **kwargs: Any,
    ) -> RagaliqEvaluationResult:
        """Score an answer; works inside a running event loop too.

        Args:
            query: The question: a text, a `QueryBundle` or a message.
            response: The answer: a text, or what a query or chat engine returned. A stream is read
                to its end.
            contexts: What it was made from: strings, nodes, or chunks with ids; by default the
                source nodes of a response object.
            reference: What a good answer says: a text, or a list of facts.
            **kwargs: Accepted and ignored, as LlamaIndex hands evaluators more than they ask for.

        Returns:
            The score and its reasons, or an invalid result with the reason.
        """
        return at_once(
            self._evaluate(
                (query, response, contexts, reference), read_answer, self._metric.evaluate_sync
            )
        )

    async def aevaluate(
        self,
        query: Any | None = None,
        response: Any | None = None,
        contexts: Contexts | None = None,
        *,
        reference: str | Sequence[str] | None = None,
        **kwargs: Any,
    ) -> RagaliqEvaluationResult:
        """`evaluate` for asynchronous code."""
        return await self._evaluate(
            (query, response, contexts, reference), aread_answer, self._metric.evaluate
        )

    async def _evaluate(
        self,
        inputs: tuple[Any, Any, Any, Any],
        read: Callable[[Any], Any],
        judge: Callable[..., Any],
    ) -> RagaliqEvaluationResult:
        query, response, contexts, reference = inputs
        shown: dict[str, Any] = {"query": text_of(query) or None}
        try:
            answer = await value_of(read(response))
        except Exception as error:  # noqa: BLE001 - see the class
            return self._invalid(f"unreadable response: {type(error).__name__}", shown, error)
        shown["response"] = answer or None
        if contexts is None and response is not None and not isinstance(response, str):
            contexts = sources_of(response) or getattr(response, "source_nodes", None) or ()
        try:
            chunks = None if contexts is None else _chunks(contexts)
            texts = [each if isinstance(each, str) else each.text for each in chunks or ()]
            shown["contexts"] = texts
            _require_texts(query, response, answer)
            given = {
                "query": query,
                "response": answer.strip() or None,
                "contexts": chunks,
                "reference": reference or None,
            }
            if missing := [name for name in self.inputs if given[name] is None]:
                needed = " and ".join(missing)
                return self._invalid(f"missing input: {self._metric.name} needs {needed}", shown)
            is_answer = isinstance(reference, str)
            case = RAGTestCase(
                query=text_of(query),
                context=chunks or [],
                response=answer,
                expected_answer=reference if is_answer else None,
                expected_facts=[] if is_answer or reference is None else list(reference),
            )
        except TypeError as error:
            return self._invalid(f"malformed input: {error}", shown)
        except ValueError as error:  # pydantic's, which may quote
            return self._invalid(f"malformed input: {type(error).__name__}", shown, error)
        try:
            # A judge may itself be built on LlamaIndex: its calls are nobody's traffic.
            with suppress():
                outcome = await value_of(judge(case, self.judge))
        except Exception as error:  # noqa: BLE001 - see the class
            # An error of the judge's own, unlike ragaliq's, may quote what was judged.
            quoted = f": {error}" if isinstance(error, RagaliqError) else ""
            status = Status.JUDGE_ERROR
            reason = f"{status.value}: {type(error).__name__}{quoted}"
            return self._invalid(reason, {**shown, "status": status}, error)
        return _translated(outcome, shown)

    def evaluate_response(
        self, query: Any | None = None, response: Any | None = None, **kwargs: Any
    ) -> RagaliqEvaluationResult:
        """Score a response object; `evaluate` takes one as well."""
        return self.evaluate(query, response, kwargs.pop("contexts", None), **kwargs)

    async def aevaluate_response(
        self, query: Any | None = None, response: Any | None = None, **kwargs: Any
    ) -> RagaliqEvaluationResult:
        """`evaluate_response` for asynchronous code."""
        return await self.aevaluate(query, response, kwargs.pop("contexts", None), **kwargs)

    def _get_prompts(self) -> PromptDictType:
        # The prompts are the judge's, not LlamaIndex templates; a local judge has none at all.
        return {}

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        if prompts_dict:
            raise ConfigurationError(
                f"{type(self).__name__} has no prompt {', '.join(sorted(prompts_dict))}; prompts "
                "belong to the judge: pass one built with its own, such as ClaudeJudge(prompts=...)"
            )

    def _invalid(
        self, reason: str, shown: Mapping[str, Any], error: Exception | None = None
    ) -> RagaliqEvaluationResult:
        return RagaliqEvaluationResult(
            **shown,
            feedback=reason,
            invalid_result=True,
            invalid_reason=reason,
            evaluator_name=self._metric.name,
            threshold=self._metric.threshold,
            error_type=type(error).__name__ if error is not None else None,
        )


class FaithfulnessEvaluator(_MetricEvaluator):
    """Share of the answer's claims that the context supports.

    Needs a response and contexts. See `ragaliq.FaithfulnessEvaluator` for score and options.
    """

    metric_class = ragaliq.FaithfulnessEvaluator
    inputs = ("response", "contexts")


class HallucinationEvaluator(_MetricEvaluator):
    """Freedom of the answer from claims that the context does not support.

    Needs a response and contexts. See `ragaliq.HallucinationEvaluator` for score and options.
    """

    metric_class = ragaliq.HallucinationEvaluator
    inputs = ("response", "contexts")


class _Relevancy(ragaliq.RelevanceEvaluator):
    """Relevance of the answer and, where there is a context, of its best chunk: the lower one."""

    async def measure(self, test_case: RAGTestCase, judge: ragaliq.LLMJudge) -> EvaluationResult:
        answer = await super().measure(test_case, judge)
        if answer.score is None or not test_case.context:
            return answer
        precision = ragaliq.ContextPrecisionEvaluator(policy=self.policy)
        context = await precision.measure(test_case, judge)
        usage = answer.usage + context.usage
        best = max((row["relevance"] for row in context.raw_response["chunks"]), default=None)
        if best is None:
            return context.model_copy(update={"evaluator_name": self.name, "usage": usage})
        score = min(answer.score, best)
        return answer.model_copy(
            update={
                "score": score,
                "passed": self.is_passing(score),
                "reasoning": f"{answer.reasoning}\nThe best chunk has a relevance of {best:.2f}.",
                "usage": usage,
                "tokens_used": usage.total_tokens,
            }
        )


class RelevancyEvaluator(_MetricEvaluator):
    """Relevance of answer and contexts to the question, as LlamaIndex's class of this name.

    Needs a query and a response. Without contexts, the score is that of
    `ragaliq.RelevanceEvaluator`; with contexts, the relevance of the best chunk if that is lower,
    at one request for each chunk.
    """

    metric_class = _Relevancy
    inputs = ("query", "response")


class CorrectnessEvaluator(_MetricEvaluator):
    """Agreement of the answer with a reference answer, claim by claim, both ways.

    Needs a response and a reference. See `ragaliq.CorrectnessEvaluator` for score and options.
    """

    metric_class = ragaliq.CorrectnessEvaluator
    inputs = ("response", "reference")


class ContextPrecisionEvaluator(_MetricEvaluator):
    """Rank-aware share of the contexts that help to answer the question.

    Needs a query and contexts. See `ragaliq.ContextPrecisionEvaluator` for score and options.
    """

    metric_class = ragaliq.ContextPrecisionEvaluator
    inputs = ("query", "contexts")


class ContextRecallEvaluator(_MetricEvaluator):
    """Share of the reference's facts that the contexts cover.

    Needs contexts and a reference. See `ragaliq.ContextRecallEvaluator` for score and options.
    """

    metric_class = ragaliq.ContextRecallEvaluator
    inputs = ("contexts", "reference")


class ChunkUtilityEvaluator(_MetricEvaluator):
    """Share of the contexts that the answer used.

    Needs a response and contexts. See `ragaliq.ChunkUtilityEvaluator` for score and options.
    """

    metric_class = ragaliq.ChunkUtilityEvaluator
    inputs = ("response", "contexts")


def _chunks(contexts: Any) -> list[str | ContextChunk]:
    """Chunks of a case; nodes as the model saw them, with their metadata."""
    if isinstance(contexts, str):
        return [contexts]
    if not isinstance(contexts, Iterable):
        raise TypeError(f"contexts must be texts or nodes, not {type(contexts).__name__}")
    chunks: list[str | ContextChunk] = []
    nodes: list[NodeWithScore | BaseNode] = []
    for item in contexts:
        if isinstance(item, str | ContextChunk):
            chunks.append(item)
        elif isinstance(item, NodeWithScore | BaseNode):
            nodes.append(item)
        else:
            raise TypeError(f"contexts must be texts or nodes, not {type(item).__name__}")
    return chunks + context_chunks(passages_of(nodes))


def _require_texts(query: Any, response: Any, answer: str) -> None:
    """Check that question and answer hold texts."""
    if query is not None and not isinstance(query, str) and not text_of(query):
        raise TypeError(f"query must be a text or a QueryBundle, not {type(query).__name__}")
    is_read = response is None or answer or isinstance(response, str)
    if not is_read and not hasattr(response, "response"):
        kind = type(response).__name__
        raise TypeError(f"response must be a text or a response object, not {kind}")


_SAME = ("evaluator_name", "status", "threshold", "claims", "usage", "judge", "model", "error_type")


def _translated(outcome: EvaluationResult, shown: Mapping[str, Any]) -> RagaliqEvaluationResult:
    scored = outcome.score is not None
    reason = outcome.error or outcome.reasoning
    feedback = [outcome.reasoning]
    for claim in outcome.claims:
        if claim.verdict != "SUPPORTED":
            why = f" ({claim.reason})" if claim.reason else ""
            feedback.append(f"{claim.verdict or 'NOT DECIDED'}: {claim.claim}{why}")
    return RagaliqEvaluationResult(
        **shown,
        **{name: getattr(outcome, name) for name in _SAME},
        passing=outcome.passed,
        feedback="\n".join(feedback),
        score=outcome.score,
        invalid_result=not scored,
        invalid_reason=None if scored else f"{outcome.status.value}: {reason}",
    )
