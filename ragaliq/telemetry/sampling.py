"""Sampler of evaluations: it follows the application's decision for the evaluated span.

It imports the SDK, so it is imported only where the application has loaded the SDK.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanKind, TraceState
from opentelemetry.util.types import Attributes


@dataclass
class FollowingSampler(Sampler):
    """Samples linked root spans like the span they link to, and children like their parent.

    Attributes:
        roots: The application's sampler, for roots without a link.
        all_targets: Record linked roots even if the linked span was not sampled.
    """

    roots: Sampler
    all_targets: bool

    def should_sample(  # noqa: PLR0917 - the SDK's signature
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """Decide whether to record the span."""
        parent = trace.get_current_span(parent_context).get_span_context()
        if parent.is_valid:
            # A remote parent is the evaluated span itself, with `relation="child"`.
            sampled = parent.trace_flags.sampled or (self.all_targets and parent.is_remote)
        elif links:
            sampled = links[0].context.trace_flags.sampled or self.all_targets
        else:
            return self.roots.should_sample(
                parent_context, trace_id, name, kind, attributes, links, trace_state
            )
        if sampled:
            return SamplingResult(Decision.RECORD_AND_SAMPLE, attributes, parent.trace_state)
        return SamplingResult(Decision.DROP)

    def get_description(self) -> str:
        """Name of the sampler, with that of the application's."""
        return f"FollowLinkedSpan({self.roots.get_description()})"
