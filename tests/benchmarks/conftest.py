"""Benchmarks are run by name (`make bench`) and say what they measured."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
for folder in (HERE.parent / "collect", HERE.parent / "traces", HERE):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


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
