"""Every metric of the telemetry page, with every value its attributes can have, for Prometheus.

What is named how is OpenTelemetry's own Prometheus exporter's business, so it is asked.
"""

import itertools
import re
from functools import cached_property
from typing import get_args

from opentelemetry import metrics
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import REGISTRY, Gauge
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

import telemetry_page
from ragaliq import Status, list_evaluators
from ragaliq.core.results import Verdict
from ragaliq.telemetry import names
from ragaliq.telemetry.metrics import MetricsRecorder

METRICS = telemetry_page.metrics()

# Attributes whose values are a closed list.
VALUES = {
    names.EVALUATION_NAME: tuple(list_evaluators()),
    names.STATUS: tuple(status.value for status in Status),
    names.EVALUATION_LABEL: ("pass", "fail"),
    names.CLAIM_VERDICT: (*get_args(Verdict), "UNVERIFIED"),
    names.RUN_OUTCOME: names.RUN_OUTCOMES,
    names.JOB_OUTCOME: names.JOB_OUTCOMES,
    names.BUDGET_LIMIT: ("usd_per_hour", "usd_per_day", "tokens_per_hour", "tokens_per_day"),
    names.TOKEN_TYPE: ("input", "output", "cache_read", "cache_write", "unsplit"),
}

# The same by Prometheus label: what a query says about one must be on the list.
BROKER_KEYS = ("ragaliq", "ragaliq.dead")
LABEL_VALUES = {name.replace(".", "_"): values for name, values in VALUES.items()}


def attribute_sets(metric):
    choices = [VALUES.get(name, ("x",)) for name in metric.attributes]
    return [
        dict(zip(metric.attributes, chosen, strict=True)) for chosen in itertools.product(*choices)
    ]


class Exposition:
    """An application's meter provider, read by Prometheus."""

    def __init__(self):
        self._provider = MeterProvider([PrometheusMetricReader()], shutdown_on_exit=False)
        self._total = 0
        self._recorder = MetricsRecorder(self._provider)
        meter = self._provider.get_meter("readings")
        for metric in METRICS:
            if metric.instrument.startswith("observable"):
                make = getattr(meter, f"create_{re.sub('[ -]', '_', metric.instrument)}")
                make(metric.name, [self._readings(metric)], metric.unit, metric.description)
        # What redis_exporter says of the broker; tests/deploy asks a real one.
        self._broker = Gauge("redis_key_size", 'The length or size of "key"', ["db", "key"])

    def _readings(self, metric):
        return lambda _: [metrics.Observation(self._total, each) for each in attribute_sets(metric)]

    def record(self):
        """Let something happen to every metric."""
        self._total += 1
        for key in BROKER_KEYS:
            self._broker.labels("db0", key).set(self._total)
        for metric in METRICS:
            if not metric.instrument.startswith("observable"):
                for attributes in attribute_sets(metric):
                    self._recorder.record(metric.name, 1, attributes)

    @cached_property
    def labels(self):
        """By the name of a sample, its labels."""
        return {
            sample.name: set(sample.labels)
            for family in self._parsed
            for sample in family.samples
            if sample.name.startswith(("ragaliq_", "redis_"))
        }

    @cached_property
    def types(self):
        """By the name of a sample, the type of its family."""
        return {s.name: family.type for family in self._parsed for s in family.samples}

    def samples_of(self, metric):
        """The names of a metric's samples."""
        stem = metric.name.replace(".", "_")
        return {name for name in self.labels if name == stem or name.startswith(f"{stem}_")}

    def close(self):
        REGISTRY.unregister(self._broker)
        self._provider.shutdown()

    @cached_property
    def _parsed(self):
        # Once: older readers show a gauge only when it was set since they were last asked.
        return list(text_string_to_metric_families(generate_latest(REGISTRY).decode()))
