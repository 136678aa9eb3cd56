"""ragaliq: claim-by-claim scores for RAG answers, live and offline, as OpenTelemetry signals.

This module is the public door. Importing it loads no framework, no SDK and hardly anything else:
each name is loaded from its home when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ragaliq._version import __version__
from ragaliq.errors import (
    BudgetExceeded,
    CircuitOpenError,
    ConfigurationError,
    DatasetError,
    EvaluationTimeout,
    JudgeAPIError,
    JudgeError,
    JudgeProcessError,
    JudgeRefusalError,
    JudgeResponseError,
    JudgeTimeoutError,
    NotEvaluated,
    RagaliqError,
    RateLimitedError,
    RedactionError,
    StoreError,
)

if TYPE_CHECKING:
    from ragaliq import telemetry
    from ragaliq.core.citations import Citation
    from ragaliq.core.passages import Passage, context_chunks
    from ragaliq.core.policy import Fallback, ScoringPolicy
    from ragaliq.core.results import (
        ClaimDetail,
        Evaluation,
        EvaluationResult,
        EvidenceSpan,
        JudgeUsage,
        Status,
        Verdict,
    )
    from ragaliq.core.run import RunInfo, SpanTarget
    from ragaliq.core.test_case import ContextChunk, RAGTestCase, Turn
    from ragaliq.evaluators import (
        ChunkUtilityEvaluator,
        CitationsEvaluator,
        ContextPrecisionEvaluator,
        ContextRecallEvaluator,
        ContradictionRateEvaluator,
        CorrectnessEvaluator,
        FaithfulnessEvaluator,
        HallucinationEvaluator,
        RelevanceEvaluator,
        Rubric,
        get_evaluator,
        list_evaluators,
        register_evaluator,
    )
    from ragaliq.evaluators.evaluator import Evaluator
    from ragaliq.guards import Guard, GuardRejected, GuardResult
    from ragaliq.judges.base import (
        BatchingJudge,
        ClaimsResult,
        ClaimVerdict,
        JudgeResult,
        LLMJudge,
    )
    from ragaliq.judges.calibration import CalibratedJudge, Calibration
    from ragaliq.judges.cascade import CascadeJudge
    from ragaliq.judges.chat_model import ChatModelJudge, ModelReply
    from ragaliq.judges.claude import DEFAULT_JUDGE_MODEL, ClaudeJudge
    from ragaliq.judges.local import LocalJudge
    from ragaliq.judges.openai_compatible import OpenAICompatibleJudge
    from ragaliq.judges.resolve import JudgeSpec, resolve_judge
    from ragaliq.live import (
        Budget,
        BudgetLine,
        CircuitBreaker,
        FinishedRun,
        Monitor,
        MonitorStats,
        OnCondition,
        OnError,
        OnFeedback,
        OnLowScore,
        OnTag,
        RateLimits,
        RunHandle,
        Sampling,
        SamplingRule,
        is_suppressed,
        lifespan,
        suppress,
    )
    from ragaliq.offline.cost import CostEstimate, estimate, estimate_async
    from ragaliq.offline.goals import Goal
    from ragaliq.offline.job import EvaluationJob
    from ragaliq.offline.journal import EvaluationJournal
    from ragaliq.offline.run import EvaluationRun, evaluate, evaluate_async
    from ragaliq.records import (
        EvaluationRecord,
        MetricSummary,
        Sink,
        SinkError,
        SinkStats,
        Summary,
    )
    from ragaliq.records.langfuse import LangfuseSink
    from ragaliq.records.langsmith import LangSmithSink
    from ragaliq.records.mlflow import MLflowSink
    from ragaliq.records.phoenix import PhoenixSink
    from ragaliq.records.store import SQLiteStore, read_records
    from ragaliq.scoring.scorer import Scorer
    from ragaliq.tables import score_batch, score_batch_schema
    from ragaliq.telemetry.emit import TelemetryOptions, current_span_target, span_target

__all__ = [
    "DEFAULT_JUDGE_MODEL",
    "BatchingJudge",
    "Budget",
    "BudgetExceeded",
    "BudgetLine",
    "CalibratedJudge",
    "Calibration",
    "CascadeJudge",
    "ChatModelJudge",
    "ChunkUtilityEvaluator",
    "CircuitBreaker",
    "CircuitOpenError",
    "Citation",
    "CitationsEvaluator",
    "ClaimDetail",
    "ClaimVerdict",
    "ClaimsResult",
    "ClaudeJudge",
    "ConfigurationError",
    "ContextChunk",
    "ContextPrecisionEvaluator",
    "ContextRecallEvaluator",
    "ContradictionRateEvaluator",
    "CorrectnessEvaluator",
    "CostEstimate",
    "DatasetError",
    "Evaluation",
    "EvaluationJob",
    "EvaluationJournal",
    "EvaluationRecord",
    "EvaluationResult",
    "EvaluationRun",
    "EvaluationTimeout",
    "Evaluator",
    "EvidenceSpan",
    "FaithfulnessEvaluator",
    "Fallback",
    "FinishedRun",
    "Goal",
    "Guard",
    "GuardRejected",
    "GuardResult",
    "HallucinationEvaluator",
    "JudgeAPIError",
    "JudgeError",
    "JudgeProcessError",
    "JudgeRefusalError",
    "JudgeResponseError",
    "JudgeResult",
    "JudgeSpec",
    "JudgeTimeoutError",
    "JudgeUsage",
    "LLMJudge",
    "LangSmithSink",
    "LangfuseSink",
    "LocalJudge",
    "MLflowSink",
    "MetricSummary",
    "ModelReply",
    "Monitor",
    "MonitorStats",
    "NotEvaluated",
    "OnCondition",
    "OnError",
    "OnFeedback",
    "OnLowScore",
    "OnTag",
    "OpenAICompatibleJudge",
    "Passage",
    "PhoenixSink",
    "RAGTestCase",
    "RagaliqError",
    "RateLimitedError",
    "RateLimits",
    "RedactionError",
    "RelevanceEvaluator",
    "Rubric",
    "RunHandle",
    "RunInfo",
    "SQLiteStore",
    "Sampling",
    "SamplingRule",
    "Scorer",
    "ScoringPolicy",
    "Sink",
    "SinkError",
    "SinkStats",
    "SpanTarget",
    "Status",
    "StoreError",
    "Summary",
    "TelemetryOptions",
    "Turn",
    "Verdict",
    "__version__",
    "context_chunks",
    "current_span_target",
    "estimate",
    "estimate_async",
    "evaluate",
    "evaluate_async",
    "get_evaluator",
    "is_suppressed",
    "lifespan",
    "list_evaluators",
    "read_records",
    "register_evaluator",
    "resolve_judge",
    "score_batch",
    "score_batch_schema",
    "span_target",
    "suppress",
    "telemetry",
]


_NAMES = {
    "ragaliq.tables": "score_batch score_batch_schema",
    "ragaliq.core.citations": "Citation",
    "ragaliq.core.passages": "Passage context_chunks",
    "ragaliq.evaluators.evaluator": "Evaluator",
    "ragaliq.core.policy": "Fallback ScoringPolicy",
    "ragaliq.core.results": (
        "ClaimDetail Evaluation EvaluationResult EvidenceSpan JudgeUsage Status Verdict"
    ),
    "ragaliq.core.run": "RunInfo SpanTarget",
    "ragaliq.core.test_case": "ContextChunk RAGTestCase Turn",
    "ragaliq.offline.cost": "CostEstimate estimate estimate_async",
    "ragaliq.evaluators": (
        "ChunkUtilityEvaluator CitationsEvaluator ContextPrecisionEvaluator ContextRecallEvaluator "
        "ContradictionRateEvaluator CorrectnessEvaluator FaithfulnessEvaluator "
        "HallucinationEvaluator RelevanceEvaluator Rubric get_evaluator list_evaluators "
        "register_evaluator"
    ),
    "ragaliq.guards": "Guard GuardRejected GuardResult",
    "ragaliq.judges.base": "BatchingJudge ClaimsResult ClaimVerdict JudgeResult LLMJudge",
    "ragaliq.judges.calibration": "CalibratedJudge Calibration",
    "ragaliq.judges.cascade": "CascadeJudge",
    "ragaliq.judges.chat_model": "ChatModelJudge ModelReply",
    "ragaliq.judges.claude": "DEFAULT_JUDGE_MODEL ClaudeJudge",
    "ragaliq.judges.local": "LocalJudge",
    "ragaliq.judges.openai_compatible": "OpenAICompatibleJudge",
    "ragaliq.judges.resolve": "JudgeSpec resolve_judge",
    "ragaliq.live": (
        "Budget BudgetLine CircuitBreaker FinishedRun Monitor MonitorStats OnCondition "
        "OnError OnFeedback OnLowScore OnTag RateLimits RunHandle Sampling SamplingRule "
        "is_suppressed lifespan suppress"
    ),
    "ragaliq.offline.goals": "Goal",
    "ragaliq.offline.job": "EvaluationJob",
    "ragaliq.offline.journal": "EvaluationJournal",
    "ragaliq.offline.run": "EvaluationRun evaluate evaluate_async",
    "ragaliq.scoring.scorer": "Scorer",
    "ragaliq.records": "EvaluationRecord MetricSummary Sink SinkError SinkStats Summary",
    "ragaliq.records.langfuse": "LangfuseSink",
    "ragaliq.records.langsmith": "LangSmithSink",
    "ragaliq.records.mlflow": "MLflowSink",
    "ragaliq.records.phoenix": "PhoenixSink",
    "ragaliq.records.store": "SQLiteStore read_records",
    "ragaliq.telemetry.emit": "TelemetryOptions current_span_target span_target",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "telemetry":
        value: Any = import_module("ragaliq.telemetry")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
