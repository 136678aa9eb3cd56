"""Runs pytest as a user would, in this process where that is enough."""

import os
import subprocess
import sys
import textwrap
from typing import NamedTuple

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
# Only the plugins that matter: others take seconds to load.
PLUGINS = ("-p", "no:cacheprovider", "-p", "ragaliq.pytest_plugin")


class Done(NamedTuple):
    stdout: str
    stderr: str = ""


@pytest.fixture
def run_pytest(pytester, monkeypatch):
    """Runs a test file; with `apart` in a process of its own, which takes seconds."""

    def run(body, *arguments, conftest="", ini="", environment=None, header=HEADER, apart=False):
        pytester.makepyfile(test_it=header + textwrap.dedent(body))
        pytester.makeconftest(textwrap.dedent(conftest))
        pytester.makefile(".ini", pytest="[pytest]\n" + ini)
        settings = ENVIRONMENT | (environment or {})
        if not apart:
            for name, value in settings.items():
                monkeypatch.setenv(name, value)
            return Done(pytester.runpytest_inprocess(*PLUGINS, *arguments).stdout.str())
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *PLUGINS, *arguments],
            env=os.environ | settings,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        return Done(done.stdout, done.stderr)

    return run
