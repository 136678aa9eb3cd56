import sys
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)

from exposition import Exposition  # noqa: E402 - beside this file


@pytest.fixture(scope="session")
def exposition():
    """All of ragaliq's metrics as the Prometheus exporter translates them."""
    exposition = Exposition()
    exposition.record()
    yield exposition
    exposition.close()
