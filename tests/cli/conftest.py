"""The command line in processes of its own, as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

GOOD = {"query": "When?", "context": ["The shop opens at 9."], "response": "The shop opens at 9."}
BAD = GOOD | {"response": "The shop opens at 9. Parrots juggle seventeen lanterns."}


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "ragaliq.cli", *map(str, arguments)]


def environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAGALIQ_")}
    return kept | {"COLUMNS": "200", "ANTHROPIC_API_KEY": ""} | variables


@pytest.fixture
def ragaliq(tmp_path):
    """Runs `ragaliq ARGUMENTS` in `tmp_path`."""

    def run(*arguments, **variables):
        return subprocess.run(
            command(*arguments),
            cwd=tmp_path,
            env=environment(**variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    return run


@pytest.fixture
def write_cases(tmp_path):
    """Writes cases to a JSONL file: each a dictionary, named after its position."""

    def write(*cases, name="cases.jsonl"):
        path = tmp_path / name
        rows = [{"id": f"case-{number}"} | case for number, case in enumerate(cases)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


@pytest.fixture
def records(tmp_path):
    """Reads a results file, without its first line."""

    def read(name="results.jsonl"):
        lines = (tmp_path / name).read_text().splitlines()[1:]
        return [json.loads(line) for line in lines]

    return read
