import asyncio
import copy
import pickle
import threading

import pytest

from ragaliq import RAGTestCase
from ragaliq.testing import ScriptedJudge


def test_a_submitted_case_is_evaluated_and_reported(monitor_of, case):
    got = []
    monitor = monitor_of(on_result=got.append)
    assert monitor.submit(case, pipeline="support")
    assert monitor.flush(5.0)
    (result,) = got
    assert result.case == case
    assert result.results["faithfulness"].score == 0.5
    assert (result.pipeline, result.sampling_probability, result.target) == ("support", 1.0, None)
    assert result.lag >= 0
    stats = monitor.stats()
    assert stats.outcomes == {"evaluated": 1}
    assert stats.evaluations == {"faithfulness": {"scored": 1}, "relevance": {"scored": 1}}


@pytest.mark.parametrize(
    "error",
    [ValueError("Zanzibar"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()],
)
def test_a_raising_callback_is_counted_each_time_logged_once_and_the_next_run_goes_on(
    monitor_of, case, error, caplog
):
    async def on_result(_):
        raise error

    monitor = monitor_of(on_result=on_result)
    for _ in range(20):
        monitor.submit(case)
    assert monitor.flush(5.0)
    assert monitor.stats().callback_errors == 20
    assert monitor.stats().outcomes == {"evaluated": 20}
    assert caplog.text.count(f"on_result raised: {type(error).__name__}") == 1
    assert "Zanzibar" not in caplog.text


def test_a_judge_that_never_answers_is_a_timeout(monitor_of, case):
    class Silent(ScriptedJudge):
        async def evaluate_relevance(self, query, response):
            await asyncio.Event().wait()

    monitor = monitor_of(judge=Silent(), deadline=0.5)
    monitor.submit(case)
    assert monitor.flush(5.0)
    assert monitor.stats().evaluations["relevance"] == {"judge_timeout": 1}
    assert monitor.stats().evaluations["faithfulness"] == {"scored": 1}


def test_a_case_without_context_ends_as_no_context_where_every_metric_needs_one(monitor_of):
    monitor = monitor_of(evaluators=["faithfulness", "hallucination"])
    monitor.submit(RAGTestCase(query="q", response="It is so."))
    assert monitor.flush(5.0)
    assert monitor.stats().outcomes == {"no_context": 1}


def test_a_copied_monitor_is_the_same_monitor(monitor_of):
    monitor = monitor_of()
    assert copy.copy(monitor) is copy.deepcopy(monitor) is monitor


def test_a_monitor_sent_to_another_process_says_to_build_one_there(monitor_of):
    with pytest.raises(TypeError, match=r"a Monitor .* cannot be pickled .*; build one there"):
        pickle.dumps(monitor_of())


def test_a_run_ended_by_the_garbage_collector_while_counts_are_read_is_counted(monitor_of):
    monitor = monitor_of()
    ticket = monitor.begin("dropped half-read")

    def end_under_the_lock():
        with monitor.tally._lock:
            ticket.discard("truncated")

    thread = threading.Thread(target=end_under_the_lock, daemon=True)
    thread.start()
    thread.join(5.0)
    assert not thread.is_alive()
    assert monitor.stats().incomplete == {"truncated": 1}
