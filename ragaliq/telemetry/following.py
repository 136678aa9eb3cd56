"""Evaluations follow the sampling decision made for the span they are about.

A trace of its own would be sampled on its own: of the answers whose trace an application keeps at
1 %, the evaluations of 99 % would be dropped. The OpenTelemetry API knows no way round that; the
SDK's tracers have a sampler as a public attribute, and a copy of ragaliq's own tracer gets another.
"""

from __future__ import annotations

import copy
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from opentelemetry import trace

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.sampling import Sampler

__all__ = ["following_links"]

_SDK = "opentelemetry.sdk.trace"


def following_links(tracer: trace.Tracer, *, all_targets: bool) -> trace.Tracer:
    """A tracer whose linked root spans are sampled as the span they link to.

    Spans with a parent follow their parent; roots without a link are left to the application's
    sampler. Where `tracer` is not the SDK's it is returned as it is.

    Args:
        tracer: Ragaliq's own tracer.
        all_targets: Record linked roots even where the linked span was not sampled.
    """
    sdk: Any = sys.modules.get(_SDK)
    if sdk is None or type(tracer) is not sdk.Tracer:
        return tracer
    following = copy.copy(tracer)
    following.sampler = _sampler_class()(tracer.sampler, all_targets=all_targets)  # type: ignore[attr-defined]
    return following


@cache
def _sampler_class() -> Any:
    # Loaded only where the application has loaded the SDK already.
    from opentelemetry.sdk.trace import sampling

    class FollowingSampler(sampling.Sampler):
        def __init__(self, roots: Sampler, *, all_targets: bool) -> None:
            self._roots = roots
            self._all_targets = all_targets

        def should_sample(  # noqa: PLR0917 - the SDK's signature
            self,
            parent_context: Any,
            trace_id: int,
            name: str,
            kind: Any = None,
            attributes: Any = None,
            links: Any = None,
            trace_state: Any = None,
        ) -> sampling.SamplingResult:
            parent = trace.get_current_span(parent_context).get_span_context()
            if parent.is_valid:
                # A remote parent is the evaluated span itself, with `relation="child"`.
                sampled = parent.trace_flags.sampled or (self._all_targets and parent.is_remote)
            elif links:
                sampled = links[0].context.trace_flags.sampled or self._all_targets
            else:
                return self._roots.should_sample(
                    parent_context, trace_id, name, kind, attributes, links, trace_state
                )
            if sampled:
                return sampling.SamplingResult(
                    sampling.Decision.RECORD_AND_SAMPLE, attributes, parent.trace_state
                )
            return sampling.SamplingResult(sampling.Decision.DROP)

        def get_description(self) -> str:
            return f"FollowLinkedSpan({self._roots.get_description()})"

    return FollowingSampler
