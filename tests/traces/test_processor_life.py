"""The processor from its monitor's beginning to its end: flushes, shutdown, exit, fork."""

import asyncio
import os
import sys
import textwrap
from pathlib import Path

import pytest
from spans import QUESTION

from ragaliq import Monitor
from ragaliq.testing import ScriptedJudge


async def test_an_inline_monitor_knows_a_run_by_its_span(following):
    monitor = Monitor(judge=ScriptedJudge(), mode="inline")
    each = following(monitor=monitor, grace=0.01)
    each.app.chain()
    last = each.app.last
    assert await asyncio.to_thread(each.processor.force_flush)
    result = await monitor.result(f"{last.trace_id:032x}-{last.span_id:016x}")
    assert result.case.query == QUESTION


def test_shutdown_scores_what_has_ended_and_counts_what_has_not(following):
    each = following()
    each.app.chain()
    each.app.tracer.start_span("rag", attributes={"openinference.span.kind": "CHAIN"})
    each.app.provider.shutdown()
    assert each.monitor.flush(30)
    assert each.monitor.stats().outcomes == {"evaluated": 1, "incomplete_run": 1}
    assert each.monitor.stats().incomplete == {"shutdown": 1}
    each.app.chain()
    assert each.monitor.stats().started == 2


def test_runs_that_end_after_the_monitor_are_counted_at_once(following):
    each = following()
    begun = each.app.tracer.start_span("rag", attributes={"openinference.span.kind": "CHAIN"})
    each.monitor.close(5)
    begun.end()
    each.app.chain()
    assert len(each.processor) == 0
    assert each.monitor.stats().incomplete == {"shutdown": 2}


def test_runs_that_end_together_are_all_read(following):
    """The second ends as soon as the first one lets go of the lock."""
    each = following(grace=0.01)
    second = each.app.tracer.start_span("rag", attributes={"openinference.span.kind": "CHAIN"})
    lock, processor = each.processor._lock, each.processor

    class Lock:
        def __enter__(self):
            return lock.__enter__()

        def __exit__(self, *_):
            lock.release()
            if processor._due and second.is_recording():
                second.end()

    processor._lock = Lock()
    each.app.chain()
    assert processor.force_flush()
    assert len(processor) == 0


PRELUDE = """
import os, warnings
warnings.simplefilter("error")
from opentelemetry.sdk.trace import TracerProvider
from ragaliq import Monitor
from ragaliq.traces import RagaliqSpanProcessor
from ragaliq.testing import ScriptedJudge
from spans import Spans

def said(result):
    os.write(1, f"{os.getpid() == here} {result.case.response}\\n".encode())
here = os.getpid()
monitor = Monitor(judge=ScriptedJudge(), on_result=said)
processor, provider = RagaliqSpanProcessor(monitor), TracerProvider()
provider.add_span_processor(processor)
app = Spans(provider)
"""


@pytest.fixture
def run(tmp_path, warm_python):
    def run(code):
        script = tmp_path / "script.py"
        script.write_text(PRELUDE + textwrap.dedent(code))
        path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
        return warm_python.run(script, cwd=tmp_path, env={"PYTHONPATH": path})

    return run


def test_a_script_that_ends_at_once_loses_no_run(run):
    done = run("app.chain()")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "True Five days.\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_starts_anew(run):
    done = run(
        """
        with app.span("rag", kind="CHAIN", asked="q"):
            app.retrieve()
            pid = os.fork()
            if pid == 0:
                assert len(processor) == 0
        if pid == 0:
            app.chain()
            assert processor.force_flush()
            os._exit(0 if monitor.stats().outcomes == {"evaluated": 1} else 1)
        assert os.waitpid(pid, 0)[1] == 0
        app.chain()
        assert processor.force_flush()
        assert monitor.stats().started == 2
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == ["False Five days.", "True Five days."]
