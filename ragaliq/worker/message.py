"""Job messages as JSON, with a version for compatibility.

The version has two parts. Within a major version a worker reads newer minor versions and ignores
unknown fields. A field that must be understood raises the major version, and a worker refuses other
major versions.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ragaliq.core.run import SpanTarget
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import MessageRefusedError
from ragaliq.records.record import deterministic_id

VERSION = (2, 0)
"""Major and minor version of the form below."""

_MOST_BYTES = 64 * 2**20
_Part = Annotated[int, Field(strict=True, ge=0, lt=10_000)]
_TRACEPARENT = r"^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"


class JobMessage(BaseModel):
    """Case to evaluate, with its run and metrics; without any metrics, those of the worker.

    `job_id` is the same for each publication of a run, `published_at` is Unix time in seconds, and
    `traceparent` the evaluated span in W3C's format, if known.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    version: tuple[int, int] = VERSION
    job_id: str = Field(max_length=128)
    published_at: float
    metrics: tuple[Annotated[str, Field(max_length=256)], ...] = ()
    traceparent: str | None = Field(default=None, pattern=_TRACEPARENT)
    case: RAGTestCase

    @field_validator("case")
    @classmethod
    def _has_run(cls, case: RAGTestCase) -> RAGTestCase:
        if case.run is None:
            raise ValueError("the case has no run")
        return case

    def evaluated_case(self) -> RAGTestCase:
        """The case, with the span of its run also from `traceparent` alone."""
        run = self.case.evaluated_run
        if run.target is not None or self.traceparent is None:
            return self.case
        _, trace_id, span_id, flags = self.traceparent.split("-")
        target = SpanTarget(
            trace_id=trace_id, span_id=span_id, trace_flags=int(flags, 16), source="traceparent"
        )
        return self.case.model_copy(update={"run": run.model_copy(update={"target": target})})

    @classmethod
    def of(cls, case: RAGTestCase, metrics: Sequence[str]) -> JobMessage:
        """Make the message for a case with a run."""
        run, traceparent = case.evaluated_run, None
        if (span := run.target) is not None:
            traceparent = f"00-{span.trace_id}-{span.span_id}-{span.trace_flags & 0xFF:02x}"
        return cls(
            job_id=deterministic_id(["job", run.run_id, repr(run.ended_at)]),
            published_at=time.time(),
            metrics=tuple(metrics),
            traceparent=traceparent,
            case=case,
        )

    def encoded(self) -> bytes:
        """The message as JSON.

        Raises:
            ValueError: JSON cannot express the case's metadata.
        """
        return json.dumps(self.model_dump(mode="json"), separators=(",", ":")).encode()


class _Versioned(BaseModel):
    version: tuple[_Part, _Part]


def read_message(body: bytes) -> JobMessage:
    """Parse the job in a message.

    Raises:
        MessageRefusedError: It contains no job, or one of another version.
    """
    if len(body) > _MOST_BYTES:
        raise MessageRefusedError("malformed", f"{len(body)} bytes")
    try:
        data = json.loads(body)
        major, minor = _Versioned.model_validate(data).version
        if major != VERSION[0]:
            raise MessageRefusedError(
                "version", f"version {major}.{minor}; this worker reads {VERSION[0]}.x only"
            )
        # A newer minor version may have fields that this one does not know.
        return JobMessage.model_validate(data, extra="ignore" if minor > VERSION[1] else None)
    except RecursionError:
        raise MessageRefusedError("malformed", "nested too deeply") from None
    except ValidationError as error:
        # The error's own words may quote the message.
        raise MessageRefusedError("malformed", f"{error.error_count()} wrong fields") from None
    except ValueError:
        raise MessageRefusedError("malformed", "no JSON") from None
