from __future__ import annotations

import os
import subprocess
import sys
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from ragaliq.live.sampling.position import position

KEYS = [f"run-{i}" for i in range(50)]


@given(st.text())
def test_every_id_has_a_number_in_the_unit_interval_and_always_the_same(key):
    assert 0.0 <= position(key) < 1.0
    assert position(key) == position(key)


def test_numbers_are_spread_evenly_even_for_ids_that_start_alike():
    # The first 48 bits of a UUIDv7 are the clock: these ids differ in the last bits only.
    keys = [str(UUID(int=0x0199_0000_0000_7000_8000_0000_0000_0000 + i)) for i in range(20_000)]
    for limit in (0.1, 0.5, 0.9):
        below = sum(position(key) < limit for key in keys)
        assert abs(below - 20_000 * limit) < 300  # standard deviation at most 71


def test_another_process_with_another_hash_seed_finds_the_same_numbers():
    code = (
        "from ragaliq.live.sampling.position import position;"
        "print(*(position(f'run-{i}').hex() for i in range(50)))"
    )
    mine = [position(key).hex() for key in KEYS]
    for seed in ("0", "1"):
        other = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert other.stdout.split() == mine
