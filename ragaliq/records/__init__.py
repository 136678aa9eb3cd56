"""Results as records: their form, their sums, and the sinks that take them."""

from ragaliq.records.base import Sink, SinkError, SinkLimits, SinkStats
from ragaliq.records.record import EvaluationRecord, evaluation_record
from ragaliq.records.resolve import SinkSpec
from ragaliq.records.sink_set import SinkSet
from ragaliq.records.summary import MetricSummary, Summary

__all__ = [
    "EvaluationRecord",
    "MetricSummary",
    "Sink",
    "SinkError",
    "SinkLimits",
    "SinkSet",
    "SinkSpec",
    "SinkStats",
    "Summary",
    "evaluation_record",
]
