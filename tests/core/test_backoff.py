from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragaliq.core.concurrency import pause_before_retry


@given(st.integers(1, 10_000), st.floats(0.001, 10.0), st.floats(10.0, 1e6))
def test_a_pause_doubles_up_to_the_longest_and_is_spread_by_a_quarter(failures, first, longest):
    doubled = min(first * 2.0 ** min(failures - 1, 60), longest)
    pause = pause_before_retry(failures, first=first, longest=longest)
    assert doubled <= pause <= 1.25 * doubled


def test_a_fleet_does_not_come_back_in_step():
    assert len({pause_before_retry(1, first=1.0, longest=2.0) for _ in range(20)}) > 1
