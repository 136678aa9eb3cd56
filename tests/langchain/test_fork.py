"""A process that forks: the child starts afresh, the parent goes on."""

import json
import os
import sys
import textwrap
from pathlib import Path

import pytest

CLEAN = {"pending": 0, "open": 0, "errors": 0}
SCRIPT = """
    import json, os, sys
    sys.path.insert(0, {parts!r})
    from rag_parts import ANSWER, QUESTION, model, rag_chain
    from langchain_ragaliq import RagaliqCallbackHandler, attach
    from ragaliq import Monitor
    from ragaliq.testing import ScriptedJudge

    results = []
    monitor = Monitor(judge=ScriptedJudge(), on_result=results.append)
    handler = attach(RagaliqCallbackHandler(monitor))
    chain = rag_chain()
    before = chain.stream("Open at the fork?")
    next(before)
    chain.invoke("Before the fork?")
    assert monitor.flush(20)
    # As if another thread were opening a run at this very moment.
    handler._registry._lock.acquire()
    child = os.fork()
    if child:
        handler._registry._lock.release()
    results.clear()
    assert "".join(before)
    chain.invoke("After the fork?")
    assert monitor.flush(20)
    stats = monitor.stats()
    if child:
        assert os.waitpid(child, 0)[1] == 0
    print(json.dumps({{
        "child": not child,
        "evaluated": sorted(result.case.query for result in results),
        "started": stats.started,
        "pending": stats.pending,
        "open": handler.open_runs,
        "errors": handler.errors,
    }}), flush=True)
    if not child:
        os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_evaluates_its_own_runs_and_the_parent_its_own(tmp_path, warm_python):
    script = tmp_path / "forking.py"
    script.write_text(textwrap.dedent(SCRIPT.format(parts=str(Path(__file__).parent))))
    path = os.pathsep.join(sys.path)
    done = warm_python.run(script, cwd=tmp_path, env={"PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    child, parent = (json.loads(line) for line in done.stdout.splitlines())
    assert child == {"child": True, "evaluated": ["After the fork?"], "started": 1, **CLEAN}
    evaluated = ["After the fork?", "Open at the fork?"]
    assert parent == {"child": False, "evaluated": evaluated, "started": 3, **CLEAN}
