import sys
from pathlib import Path

import pytest

from ragaliq import Monitor

FOLDER = Path(__file__).parent
if str(FOLDER) not in sys.path:
    sys.path.insert(0, str(FOLDER))

RESULTS = []


@pytest.fixture(scope="session")
def monitor_of_all():
    # One process that judges, for all conversations: each has a name of its own.
    metrics = ["faithfulness", "citations"]
    with Monitor(judge="local", metrics=metrics, on_result=RESULTS.append) as made:
        yield made


@pytest.fixture
def monitor(monitor_of_all):
    RESULTS.clear()
    return monitor_of_all


@pytest.fixture
def results(monitor):
    return RESULTS
