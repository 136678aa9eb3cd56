"""The command line as a user runs it."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

import pytest

from ragaliq.cli.app import run


class Done(NamedTuple):
    stdout: str
    stderr: str


@pytest.fixture
def ragaliq(tmp_path, monkeypatch, capsys):
    """Runs `ragaliq ARGUMENTS` in `tmp_path`, in this process: starting one takes a second.

    It must end with the code that is expected, and never with a traceback.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "")
    for name in os.environ:
        if name.startswith("RAGALIQ_"):
            monkeypatch.delenv(name)

    def command(*arguments, code=0, **variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["ragaliq", *map(str, arguments)])
        capsys.readouterr()
        ended = run()
        done = Done(*capsys.readouterr())
        assert ended == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return command
