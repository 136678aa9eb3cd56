"""Where results go besides OpenTelemetry: an embedded store, and products that take scores."""

from ragaliq.sinks.base import Sink, SinkError, SinkLimits, SinkStats
from ragaliq.sinks.record import (
    CaseRecord,
    ChunkRecord,
    ClaimRecord,
    EvaluationRecord,
    MetricRecord,
)
from ragaliq.sinks.recording import evaluation_record
from ragaliq.sinks.resolve import SinkSpec
from ragaliq.sinks.sink_set import SinkSet

__all__ = [
    "CaseRecord",
    "ChunkRecord",
    "ClaimRecord",
    "EvaluationRecord",
    "MetricRecord",
    "Sink",
    "SinkError",
    "SinkLimits",
    "SinkSet",
    "SinkSpec",
    "SinkStats",
    "evaluation_record",
]
