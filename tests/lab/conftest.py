"""Makes `bench_claims` importable by name, as test folders are no packages."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="session")
def few_resamples():
    """The ends of intervals are the business of `test_agreement.py`; here they only cost time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragaliq.lab.resampling.RESAMPLES", 60)
        yield
