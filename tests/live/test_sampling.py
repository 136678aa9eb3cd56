from __future__ import annotations

import subprocess
import sys
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaliq import ConfigurationError
from ragaliq.live import Sampler


@given(st.text(min_size=1))
def test_rate_zero_takes_nothing_and_rate_one_everything(key):
    assert not Sampler(0.0).decide(key)
    assert Sampler(1.0).decide(key)


@given(st.text(min_size=1), st.floats(0, 1), st.floats(0, 1))
def test_a_run_sampled_at_a_low_rate_is_sampled_at_every_higher_one(key, one, other):
    low, high = sorted((one, other))
    assert not Sampler(low).decide(key) or Sampler(high).decide(key)


def test_the_share_sampled_is_the_rate_even_for_ids_that_start_alike():
    # The first 48 bits of a UUIDv7 are the clock: these ids differ in the last bits only.
    keys = [str(UUID(int=0x0199_0000_0000_7000_8000_0000_0000_0000 + i)) for i in range(20_000)]
    taken = sum(Sampler(0.1).decide(key) for key in keys)
    assert 1_800 < taken < 2_200  # 2,000 expected, standard deviation 42


def test_another_process_with_another_hash_seed_decides_the_same():
    keys = [f"run-{i}" for i in range(200)]
    code = (
        "from ragaliq.live import Sampler; s = Sampler(0.3);"
        "print(''.join(str(int(s.decide(f'run-{i}'))) for i in range(200)))"
    )
    mine = "".join(str(int(Sampler(0.3).decide(key))) for key in keys)
    for seed in ("0", "1"):
        other = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert other.stdout.strip() == mine


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_a_rate_outside_the_unit_interval_is_refused(rate):
    with pytest.raises(ConfigurationError, match="sample_rate"):
        Sampler(rate)
