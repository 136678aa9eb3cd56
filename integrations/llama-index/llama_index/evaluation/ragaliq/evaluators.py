"""ragaliq's metrics as LlamaIndex evaluators."""

from __future__ import annotations

import ragaliq
from llama_index.evaluation.ragaliq.metric_evaluator import MetricEvaluator

__all__ = ["FaithfulnessEvaluator", "HallucinationEvaluator", "RelevancyEvaluator"]


class FaithfulnessEvaluator(MetricEvaluator):
    """Whether the answer says only what the context supports, claim by claim.

    Needs a response and contexts. See `ragaliq.FaithfulnessEvaluator` for score and options.
    """

    metric_class = ragaliq.FaithfulnessEvaluator
    inputs = ("response", "contexts")


class HallucinationEvaluator(MetricEvaluator):
    """Whether the answer is free of claims the context does not support.

    Needs a response and contexts. See `ragaliq.HallucinationEvaluator` for score and options.
    """

    metric_class = ragaliq.HallucinationEvaluator
    inputs = ("response", "contexts")


class RelevancyEvaluator(MetricEvaluator):
    """Whether the answer addresses the question; the contexts play no part.

    Needs a query and a response. See `ragaliq.RelevanceEvaluator`.
    """

    metric_class = ragaliq.RelevanceEvaluator
    inputs = ("query", "response")
