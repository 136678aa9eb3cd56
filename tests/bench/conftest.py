"""Makes `bench_claims` importable by name, as test folders are no packages."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    """The intervals' ends are the statistics' own tests' business; here they only cost time."""
    monkeypatch.setattr("ragaliq.bench.figures._MOST_RESAMPLES", 60)
