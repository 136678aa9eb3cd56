"""Results as records: their form, their summary, and the sinks that store them."""

from ragaliq.records.record import EvaluationRecord, SinkError, evaluation_record
from ragaliq.records.sinks import Sink, SinkSet, SinkSpec, SinkStats
from ragaliq.records.summary import MetricSummary, Summary

__all__ = [
    "EvaluationRecord",
    "MetricSummary",
    "Sink",
    "SinkError",
    "SinkSet",
    "SinkSpec",
    "SinkStats",
    "Summary",
    "evaluation_record",
]
