"""A run as plain data makes the same case in another process."""

import json
import sys
from pathlib import Path

import pytest

from ragaliq.capture import RunLog

sys.path.append(str(Path(__file__).parent.parent / "runs"))
from harness import FRAMEWORKS, applications, observe

SAME = {"sources", "query", "context", "prompt_context", "response", "history", "citations", "tags"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_recorded_application_gives_the_same_case(framework, monkeypatch):
    built, differ = [], []
    build = RunLog.to_case

    def build_both(log):
        written = json.loads(json.dumps(log.to_plain()))
        case = build(log)
        again = build(RunLog.from_plain(written))
        built.append(case)
        if again.model_dump(include=SAME) != case.model_dump(include=SAME):
            differ.append((case, again))
        return case

    monkeypatch.setattr(RunLog, "to_case", build_both)
    for application in list(applications(framework).values())[::5]:
        observe(application)
    assert len(built) > 20
    assert differ == []


def test_steps_may_have_any_ids():
    log = RunLog("r", {("a", 1): None})
    log.began(object(), ("a", 1))
    assert RunLog.from_plain(json.loads(json.dumps(log.to_plain()))).parents == {0: None, 1: 0}
