"""Exit, fork, threads, pools, signals and cells that run again, in processes of their own."""

import re
import signal
import subprocess
import sys
import textwrap

import pytest

NO_THREADS_AT_EXIT = {
    "condition": sys.version_info[:3] in {(3, 12, 0), (3, 12, 1)},
    "reason": "these two start no thread any more once the main thread has ended (gh-113964)",
}

LOST = (
    "lost at the end of the process: {} runs not evaluated (counted as shutdown), 0 results not "
    "stored (counted as dropped)"
)

PRELUDE = """
import asyncio, os, sys, threading, time
from ragaliq import Monitor, RAGTestCase
from ragaliq.testing import ScriptedJudge

class Slow(ScriptedJudge):
    async def evaluate_relevance(self, query, response):
        await asyncio.sleep(0.2)
        return await super().evaluate_relevance(query, response)

case = RAGTestCase(query="q", context=["c"], response="Alpha is one.")
def said(result):
    os.write(1, f"{result.case.id} {result.results['relevance'].status}\\n".encode())
def monitor(judge=None, **options):
    return Monitor(judge=judge or Slow(), metrics=["relevance"], on_result=said, **options)
def named(name):
    return case.model_copy(update={"id": name})
"""


@pytest.fixture
def run(tmp_path):
    def run(code):
        script = tmp_path / "application.py"
        script.write_text(PRELUDE + textwrap.dedent(code))
        done = subprocess.run(
            [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", str(script)],
            env={"PYTHONPATH": ":".join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        # A busy machine takes more than the two seconds after which the wait is explained.
        said = [line for line in done.stderr.splitlines(True) if "Ctrl-C ends it now" not in line]
        done.stderr = "".join(said)
        return done

    return run


@pytest.mark.skipif(**NO_THREADS_AT_EXIT)
def test_a_script_that_ends_without_flushing_loses_nothing_and_its_judge_may_open_connections(run):
    done = run(
        """
        import socket
        class Connecting(ScriptedJudge):
            async def evaluate_relevance(self, query, response):
                await asyncio.sleep(0.2)
                await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 80)
                await asyncio.to_thread(time.sleep, 0)
                return await super().evaluate_relevance(query, response)
        m = monitor(Connecting())
        for name in ("r0", "r1", "r2"):
            m.submit(named(name))
        """
    )
    assert sorted(done.stdout.splitlines()) == ["r0 scored", "r1 scored", "r2 scored"]
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(**NO_THREADS_AT_EXIT)
def test_runs_of_threads_that_outlive_the_main_thread_are_evaluated(run):
    done = run(
        """
        from concurrent.futures import ThreadPoolExecutor
        m = monitor(ScriptedJudge())
        def late(name):
            time.sleep(0.2); m.submit(named(name))
        executor = ThreadPoolExecutor(2)
        for name in ("a", "b", "c"):
            executor.submit(late, name)
            threading.Thread(target=late, args=(name.upper(),)).start()
        """
    )
    assert sorted(done.stdout.splitlines()) == [f"{name} scored" for name in "ABCabc"]
    assert (done.returncode, done.stderr) == (0, "")


def test_exit_waits_no_longer_than_its_limit(run):
    done = run(
        """
        class Silent(ScriptedJudge):
            async def evaluate_relevance(self, query, response):
                await asyncio.sleep(3600)
        m = monitor(Silent(), exit_timeout=0.1, deadline=3600); m.submit(named("never"))
        """
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines() == [LOST.format(1)]


def test_a_long_wait_at_exit_says_why_and_an_interrupt_ends_it():
    code = """
        class Silent(ScriptedJudge):
            async def evaluate_relevance(self, query, response):
                await asyncio.sleep(3600)
        m = monitor(Silent(), exit_timeout=3000, deadline=3600)
        for _ in range(10):
            m.submit(case)
        m2 = monitor(Silent(), exit_timeout=3000, deadline=3600)
        m2.submit(case)
        import atexit
        atexit.register(lambda: print(m.stats().outcomes, m2.stats().outcomes))
    """
    waiting = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code)],
        env={"PYTHONPATH": ":".join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said = waiting.stderr.readline()
        waiting.send_signal(signal.SIGINT)
        out, err = waiting.communicate(timeout=60)
    finally:
        waiting.kill()
    assert re.search(r"waits for 11 runs to be evaluated and 0 results to be stored", said)
    assert "2998 s more at most; Ctrl-C ends it now" in said
    assert sorted(err.splitlines()) == [LOST.format(11)]
    assert out == "{'shutdown': 10} {'shutdown': 1}\n"
    assert waiting.returncode == 0


def test_a_judge_that_blocks_its_thread_does_not_hold_the_process(run):
    done = run(
        """
        class Blocking(ScriptedJudge):
            async def evaluate_relevance(self, query, response):
                time.sleep(3600)
        m = monitor(Blocking(), exit_timeout=0.1); m.submit(named("never"))
        """
    )
    assert done.returncode == 0


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs fork")
class TestFork:
    def test_a_child_starts_anew_and_the_parents_runs_stay_the_parents(self, run):
        done = run(
            """
            m = monitor(); m.submit(named("parent")); time.sleep(0.05)
            pid = os.fork()
            if pid == 0:
                assert m.stats().started == 0
                m.submit(named("child"))
                os._exit(0 if m.flush(10) and m.stats().outcomes == {"evaluated": 1} else 1)
            assert os.waitpid(pid, 0)[1] == 0
            assert m.flush(10) and m.stats().outcomes == {"evaluated": 1}
            """
        )
        assert done.stderr == ""
        assert sorted(done.stdout.splitlines()) == ["child scored", "parent scored"]

    def test_a_closed_monitor_budget_and_breaker_are_a_childs_own(self, run):
        done = run(
            """
            from ragaliq import Budget, CircuitBreaker, JudgeAPIError
            closed = monitor(); closed.submit(named("closed")); closed.close(10)
            judge = ScriptedJudge(failures={"evaluate_relevance": [JudgeAPIError("down"), None]})
            m = monitor(judge, breaker=CircuitBreaker(failures=1), budget=Budget(usd_per_day=1))
            m.submit(named("parent")); m.flush(10)
            assert m.stats().breaker == "open"
            pid = os.fork()
            if pid == 0:
                assert not closed.submit(named("child"))
                assert closed.stats().outcomes == {"shutdown": 1}
                m.submit(named("child"))
                os._exit(0 if m.flush(10) and m.stats().breaker == "closed" else 1)
            assert os.waitpid(pid, 0)[1] == 0
            assert m.stats().breaker == "open"
            """
        )
        assert done.returncode == 0
        assert sorted(done.stdout.splitlines()) == [
            *("child scored", "closed scored", "parent judge_error")
        ]


@pytest.mark.slow
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
def test_worker_processes_evaluate_before_they_end(run, method, pool):
    done = run(
        f"""
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor
        m = monitor()
        def submit(name): m.submit(named(name))
        if __name__ == "__main__":
            submit("parent")
            context = multiprocessing.get_context({method!r})
            {pool}
        """
    )
    assert sorted(done.stdout.splitlines()) == ["child scored", "parent scored"]
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "said", "status"),
    [
        (
            """
            import signal
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
            m = monitor(); m.submit(named("a")); m.submit(named("b"))
            os.kill(os.getpid(), signal.SIGTERM)
            """,
            ["a scored", "b scored"],
            3,
        ),
        (
            """
            import gc
            for cell in range(3):
                m = monitor(); m.submit(named(f"{cell}"))
            m.flush(20)
            del m
            ends = time.monotonic() + 20
            # An older monitor may have its last run still when the latest has none: it is collected
            # after that, as in a notebook, where the collector runs again and again.
            while threading.active_count() > 2 and time.monotonic() < ends:
                gc.collect()
                time.sleep(0.01)
            os.write(1, f"threads {threading.active_count()}\\n".encode())
            """,
            ["0 scored", "1 scored", "2 scored", "threads 2"],
            0,
        ),
        (
            """
            import importlib, ragaliq, ragaliq.live.monitor, ragaliq.live.runtime
            m = monitor()
            for module in (ragaliq.live.runtime, ragaliq.live.monitor, ragaliq.live, ragaliq):
                importlib.reload(module)
            m.submit(named("old"))
            from ragaliq import Monitor
            m = monitor(); m.submit(named("new"))
            """,
            ["new scored", "old scored"],
            0,
        ),
    ],
    ids=["a signal that is made an exit", "a cell that runs again", "a package loaded again"],
)
def test_no_run_is_lost_and_no_thread_left_but_the_worker(run, code, said, status):
    done = run(code)
    assert (sorted(done.stdout.splitlines()), done.returncode, done.stderr) == (said, status, "")


@pytest.mark.skipif(sys.platform != "linux", reason="calls the C library's fork")
def test_a_child_that_python_was_not_told_of_judges_its_runs(run):
    done = run(
        """
        import ctypes

        from ragaliq.core.sync import run_sync

        async def one():
            return 1

        with monitor() as parent:
            parent.submit(named("parent"))
            assert parent.flush() and run_sync(one()) == 1
            child = ctypes.PyDLL(None).fork()  # as uWSGI does
            if child == 0:
                parent.submit(named("child"))
                os._exit(0 if parent.flush(20.0) and run_sync(one()) == 1 else 1)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert done.stdout == "parent scored\nchild scored\n0\n", done.stderr
