"""Judges as the command line names them."""

from __future__ import annotations

import pytest

from ragaliq import CascadeJudge, ClaudeJudge, ConfigurationError, LocalJudge
from ragaliq.cli.options import choose_judge
from ragaliq.judges.calibration import fit_calibration


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")


def test_a_cascade_has_the_model_of_its_paid_judge_and_the_calibration_of_its_screen(tmp_path):
    support = [(i + 0.5) / 200 for i in range(200)]
    calibration = fit_calibration(LocalJudge(), support, [x > 0.4 for x in support])
    calibration.save(tmp_path / "cal.json")
    judge = choose_judge(
        "local>claude", model="claude-haiku-4-5", calibration=tmp_path / "cal.json"
    ).judge
    assert isinstance(judge, CascadeJudge)
    assert judge.calibration == calibration.id
    assert isinstance(judge.stages[1], ClaudeJudge)
    assert judge.model == "claude-haiku-4-5"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "claude>openai", "model": "m", "base_url": "http://x"}, "which judge"),
        ({"name": "local>openai"}, "needs --model and --base-url"),
        ({"name": "local>claude", "base_url": "http://x"}, "goes with --judge openai"),
        ({"name": "local>"}, "written such as"),
        ({"name": "Claude"}, "did you mean 'claude'"),
        ({"name": "local>cluade"}, "did you mean 'claude'"),
        ({"name": "entailment"}, "a folder or an .onnx file"),
        ({"name": "entailment", "model": "nowhere/m.onnx"}, "no file"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, says):
    with pytest.raises(ConfigurationError, match=says):
        choose_judge(**options)
