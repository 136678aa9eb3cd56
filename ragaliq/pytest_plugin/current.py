"""Options of the plugin, and the pytest runs in progress; imports nothing slow."""

from __future__ import annotations

from typing import Any

import pytest

OPTIONS = {
    "ragaliq_judge": "who decides: local (the default) or claude",
    "ragaliq_model": "Claude's model",
    "ragaliq_max_cost": "US dollars that all tests together may spend on the judge",
    "ragaliq_sinks": "where results are stored: sqlite:///path, several with blanks between them",
}

RUNS: list[pytest.Config] = []
"""The current run is the last: a test of a plugin runs pytest within pytest (`pytester`)."""

SESSION: pytest.StashKey[Any] = pytest.StashKey()
"""Key of a run's `RagSession`, which is made when a test needs it."""
