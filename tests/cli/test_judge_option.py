"""Judges as the command line names them."""

from __future__ import annotations

import pytest

from ragaliq import ConfigurationError
from ragaliq.cli.options import choose_judge


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "claude>openai", "model": "m", "base_url": "http://x"}, "which judge"),
        ({"name": "local>openai"}, "needs --model and --base-url"),
        ({"name": "local>claude", "base_url": "http://x"}, "goes with --judge openai"),
        ({"name": "Claude"}, "did you mean 'claude'"),
        ({"name": "local>cluade"}, "did you mean 'claude'"),
        ({"name": "entailment"}, "a folder or an .onnx file"),
        ({"name": "entailment", "model": "nowhere/m.onnx"}, "no file"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, says):
    with pytest.raises(ConfigurationError, match=says):
        choose_judge(**options)
