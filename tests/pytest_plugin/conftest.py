"""Runs pytest in a process of its own, as a user would."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

HEADER = """
import pytest
from ragaliq import RAGTestCase
from ragaliq.pytest_plugin import assert_rag

GOOD = RAGTestCase(query="Q?", context=["The shop opens at 9."], response="The shop opens at 9.")
BAD = RAGTestCase(
    name="bad one",
    query="Q?",
    context=["The shop opens at 9."],
    response="The shop opens at 9. Parrots juggle seventeen lanterns.",
)
"""

ENVIRONMENT = {"NO_COLOR": "1", "COLUMNS": "200", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


@pytest.fixture
def run_pytest(tmp_path):
    def run(body, *arguments, conftest="", ini="", environment=None, header=HEADER):
        (tmp_path / "test_it.py").write_text(header + textwrap.dedent(body))
        (tmp_path / "conftest.py").write_text(textwrap.dedent(conftest))
        (tmp_path / "pytest.ini").write_text("[pytest]\n" + ini)
        # Only the plugins that matter: others take seconds to load.
        plugins = ["-p", "no:cacheprovider", "-p", "ragaliq.pytest_plugin", "-p", "xdist"]
        return subprocess.run(
            [sys.executable, "-m", "pytest", *plugins, *arguments],
            cwd=tmp_path,
            env=os.environ | ENVIRONMENT | (environment or {}),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    return run
