"""Commands of the quickstart and the tutorials print what the pages say they print."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEP = re.compile(r"^```sh\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
PAGES = ["docs/pages/quickstart.md", "docs/pages/tutorial.md", "docs/pages/live-tutorial.md"]


@pytest.fixture
def shell(tmp_path):
    """Run commands in a folder of their own, where `ragaliq` is this tree's."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, call in {"ragaliq": "-m ragaliq.cli", "python3": ""}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {call} "$@"\n')
        (programs / name).chmod(0o755)

    def run(commands):
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("RAGALIQ_")}
        return subprocess.run(
            ["bash", "-euc", commands],
            cwd=tmp_path,
            env={
                **inherited,
                "PATH": f"{programs}:{os.environ['PATH']}",
                "PYTHONPATH": ":".join(sys.path),
            },
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    return run


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_print_what_the_page_says(shell, page):
    steps = STEP.findall((ROOT / page).read_text())
    assert steps
    for commands, promised in steps:
        done = shell(commands)
        assert done.returncode == 0, done.stderr
        if promised:
            printed = [line.rstrip() for line in done.stdout.splitlines()]
            assert printed == promised.splitlines()
