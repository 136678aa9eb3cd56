from __future__ import annotations

import pytest

from ragaliq import Monitor, RAGTestCase
from ragaliq.testing import ScriptedJudge


@pytest.fixture
def case():
    return RAGTestCase(query="q", context=["Alpha is one."], response="Alpha is one. Beta is two.")


@pytest.fixture
def monitor_of():
    """Builds monitors and closes them after the test."""
    monitors = []

    def build(**options):
        options.setdefault("judge", ScriptedJudge())
        monitors.append(Monitor(**options))
        return monitors[-1]

    yield build
    for monitor in monitors:
        monitor.close(timeout=1.0)
