"""Processes of other kinds than a plain script: workers of pools, signals, cells that run again."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.slow

APPLICATION = """
import asyncio, os, signal, sys, threading
from ragaliq import Monitor, RAGTestCase
from ragaliq.testing import ScriptedJudge

def said(result):
    os.write(1, f"{result.case.query}\\n".encode())
def built():
    judge = ScriptedJudge(delay=0.1)
    return Monitor(judge=judge, evaluators=["relevance"], on_result=said, concurrency=1)
def submit(name):
    assert monitor.submit(RAGTestCase(query=name, context=["c"], response="Alpha is one."))
monitor = built()
"""


def run(code, folder):
    script = folder / "application.py"
    script.write_text(APPLICATION + textwrap.dedent(code))
    return subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", str(script)],
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
@pytest.mark.parametrize(
    "pool",
    [
        "p = context.Process(target=submit, args=('child',)); p.start(); p.join()",
        "with ProcessPoolExecutor(1, context) as pool: pool.submit(submit, 'child').result()",
        "pool = context.Pool(1); pool.map(submit, ['child']); pool.close(); pool.join()",
    ],
    ids=["Process", "ProcessPoolExecutor", "Pool"],
)
def test_worker_processes_evaluate_before_they_end(tmp_path, method, pool):
    done = run(
        f"""
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor
        if __name__ == "__main__":
            submit("parent")
            context = multiprocessing.get_context({method!r})
            {pool}
        """,
        tmp_path,
    )
    assert sorted(done.stdout.splitlines()) == ["child", "parent"]
    assert (done.returncode, done.stderr) == (0, "")


def test_a_signal_that_is_made_an_exit_loses_nothing(tmp_path):
    done = run(
        """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
        submit("a"); submit("b")
        os.kill(os.getpid(), signal.SIGTERM)
        """,
        tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "a\nb\n", "")


def test_a_cell_that_runs_again_loses_no_run_and_leaves_no_thread(tmp_path):
    done = run(
        """
        import gc, time
        for cell in range(5):
            monitor = built()
            submit(f"{cell}")
        monitor.flush(20)
        del monitor
        ends = time.monotonic() + 20
        # An older monitor may have its last run still when the latest has none: it is collected
        # after that, as in a notebook, where the collector runs again and again.
        while threading.active_count() > 1 and time.monotonic() < ends:
            gc.collect()
            time.sleep(0.01)
        os.write(1, f"threads {threading.active_count()}\\n".encode())
        """,
        tmp_path,
    )
    assert sorted(done.stdout.splitlines()) == [*"01234", "threads 1"]
    assert (done.returncode, done.stderr) == (0, "")


def test_a_package_that_is_loaded_again_goes_on_with_the_monitor_there_was(tmp_path):
    done = run(
        """
        import importlib, ragaliq, ragaliq.live.monitor, ragaliq.live.lifecycle
        for module in (ragaliq.live.lifecycle, ragaliq.live.monitor, ragaliq.live, ragaliq):
            importlib.reload(module)
        submit("old")
        from ragaliq import Monitor
        monitor = built()
        submit("new")
        """,
        tmp_path,
    )
    assert sorted(done.stdout.splitlines()) == ["new", "old"]
    assert (done.returncode, done.stderr) == (0, "")
