"""What holds for every test."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# No deadlines: how long an example takes says more about the machine than about the code, and
# speed is what the benchmarks are for. In CI the examples are the same in every run.
settings.register_profile(
    "ragaliq",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("ragaliq")
