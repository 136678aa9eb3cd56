"""Options of the plugin, and the pytest runs in progress; imports nothing slow."""

from __future__ import annotations

from typing import Any

import pytest

OPTIONS = {
    "ragaliq_judge": "the judge: local (the default), claude, openai:MODEL, or a cascade such as "
    "local>claude",
    "ragaliq_model": "the model of claude or openai, where the judge names none",
    "ragaliq_max_cost": "US dollars that all tests together may spend on the judge",
    "ragaliq_sinks": "where results are stored: sqlite:///path, several with blanks between them",
}

RUNS: list[pytest.Config] = []
"""The current run is the last: a test of a plugin runs pytest within pytest (`pytester`)."""

SESSION: pytest.StashKey[Any] = pytest.StashKey()
"""Key of a run's `RagSession`, which is made when a test needs it."""
