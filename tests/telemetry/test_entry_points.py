"""Whatever has a case judged emits the same: spans, events and metrics."""

import json
import os
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def emitted(tmp_path_factory, warm_python):
    """What each entry point emitted through the providers of its process."""
    done = warm_python.run(
        Path(__file__).with_name("entry_points_program.py"),
        cwd=tmp_path_factory.mktemp("entry_points"),
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("entry", ["monitor", "evaluated", "table", "asserted", "file", "worker"])
def test_every_entry_point_emits_spans_events_and_metrics(emitted, entry):
    found = emitted[entry]
    assert found["evaluations"] == {"faithfulness": 1, "relevance": 1}
    assert found["events"] == ["faithfulness", "relevance"]
    root = "evaluation cases" if entry == "file" else "evaluation"  # named after the file
    assert sorted(found["spans"]) == sorted(
        [root, "evaluation faithfulness", "evaluation relevance", "claim supported"]
    )
