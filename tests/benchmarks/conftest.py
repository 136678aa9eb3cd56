"""Benchmarks are run by name (`make bench`) and say what they measured."""

import sys
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)


@pytest.fixture
def report(request):
    """Print lines, whatever pytest captures."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    writer = request.config.get_terminal_writer()

    def say(lines):
        with capture.global_and_fixture_disabled():
            writer.line()
            for line in lines:
                writer.line(line)

    return say
