from __future__ import annotations

from ragaliq import ContextChunk, RAGTestCase, RunInfo, SpanTarget
from ragaliq.worker.message import Job


def test_a_job_is_plain_data_that_survives_json():
    job = Job(
        case=RAGTestCase(query="q", context=[ContextChunk(text="c", id="d")], response="r"),
        run=RunInfo(
            run_id="1",
            target=SpanTarget(trace_id="0" * 31 + "1", span_id="0" * 15 + "2"),
            sampling_probability=0.25,
        ),
    )
    assert Job.model_validate_json(job.model_dump_json()) == job
