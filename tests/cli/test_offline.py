"""`ragaliq judge bench` with requests that are written instead of sent."""

from pathlib import Path

import pytest


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_requests_that_cannot_be_written_end_the_command(ragaliq, write_cases):
    labels = write_cases({"claim": "It opens.", "context": ["It opens at 9."], "label": 1})
    done = ragaliq("judge", "bench", labels, "--judge", "claude", "--render", "/dev/full", code=3)
    assert "/dev/full: No space left on device" in done.stderr
