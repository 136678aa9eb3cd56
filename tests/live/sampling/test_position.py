from uuid import UUID

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.trace import NonRecordingSpan, SpanContext

from ragaliq.live.sampler import position, sampling_key

RUN_ID = UUID("01234567-89ab-7def-8123-456789abcdef")


def test_numbers_are_spread_evenly_even_for_ids_that_start_alike():
    # The first 48 bits of a UUIDv7 are the clock: these ids differ in the last bits only.
    keys = [str(UUID(int=0x0199_0000_0000_7000_8000_0000_0000_0000 + i)) for i in range(20_000)]
    for limit in (0.1, 0.5, 0.9):
        below = sum(position(key) < limit for key in keys)
        assert abs(below - 20_000 * limit) < 300  # standard deviation at most 71


@pytest.mark.parametrize(
    ("key", "number"),
    [("run-0", "0x1.8bb89ef966a59p-1"), (str(RUN_ID), "0x1.875ce8428dbbep-1")],
)
def test_processes_of_another_release_find_the_same_numbers(key, number):
    assert position(key) == float.fromhex(number)


def test_the_current_trace_decides_about_a_run_and_without_one_its_id_as_text():
    span = NonRecordingSpan(SpanContext(trace_id=0xABC, span_id=1, is_remote=False))
    assert sampling_key(RUN_ID) == sampling_key(str(RUN_ID)) == str(RUN_ID)
    for current, key in (
        (trace.set_span_in_context(span), f"{0xABC:032x}"),
        (baggage.set_baggage("tenant", "a"), str(RUN_ID)),
    ):
        token = context.attach(current)
        try:
            assert sampling_key(RUN_ID) == key
        finally:
            context.detach(token)
