"""Where gevent or eventlet has patched threads, ragaliq refuses and changes nothing else."""

import subprocess
import sys

import pytest

_PROGRAM = """
{patch}
import asyncio, logging, sys
logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
from ragaliq import Monitor, RAGTestCase, evaluate

async def others():
    return "a loop of the application's own runs"

monitor = Monitor(judge="local", executor="thread")
case = RAGTestCase(query="q", context=["It is so."], response="It is so.")
for _ in range(3):
    assert not monitor.submit(case)
    print(asyncio.run(others()))
try:
    evaluate([case])
except RuntimeError as error:
    print("evaluate:", error)
print(asyncio.run(others()))
stats = monitor.stats()
print(stats.outcomes, stats.pending, monitor.flush(1.0))
"""
_PATCHES = {
    "gevent": "from gevent import monkey; monkey.patch_all()",
    "eventlet": "import eventlet; eventlet.monkey_patch()",
}


@pytest.mark.parametrize("library", _PATCHES)
def test_nothing_is_evaluated_and_the_applications_own_loops_run(library):
    pytest.importorskip(library)
    program = _PROGRAM.format(patch=_PATCHES[library])
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said.count("a loop of the application's own runs") == 4
    (warning,) = [line for line in said if line.startswith("WARNING")]
    assert warning.startswith(f"WARNING {library} has patched threading")
    assert "gthread" in warning
    assert f"evaluate: {library} has patched threading, and ragaliq needs real threads" in said
    assert said[-1] == "{'incomplete_run': 3} 0 True"
