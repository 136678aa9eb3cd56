"""Inline mode and direct evaluation: results are there in time, and nothing waits for itself."""

import asyncio
import threading
import uuid

import pytest

from ragaliq import (
    EvaluationTimeout,
    NotEvaluated,
    OnFeedback,
    Sampling,
    suppress,
)
from ragaliq.live import run as inline_module
from ragaliq.testing import ScriptedJudge

FAITHFULNESS = ["faithfulness"]


@pytest.fixture
def inline(monitor_of):
    def build(**options):
        return monitor_of(mode="inline", metrics=FAITHFULNESS, **options)

    return build


def run(monitor, case, run_id="r"):
    """What an adapter does."""
    return monitor.begin(run_id).submit(case)


def score(result):
    return result.results["faithfulness"].score


def test_the_result_is_there_when_the_run_has_ended(inline, case):
    monitor = inline()
    assert run(monitor, case)
    assert score(monitor.last_result) == 0.5
    assert monitor.stats().outcomes == {"evaluated": 1}


def test_a_background_monitor_does_not_wait_and_keeps_nothing(monitor_of, case, held):
    monitor = monitor_of(judge=held)
    run(monitor, case)
    assert monitor.last_result is None
    assert monitor.stats().pending == 1
    held.released.set()
    assert monitor.flush(5.0)


def test_at_the_limit_the_answer_goes_out_and_the_run_is_counted_once_in_the_background(
    inline, case, held
):
    monitor = inline(judge=held, inline_timeout=0.01)
    assert run(monitor, case)
    assert monitor.last_result is None
    assert monitor.stats().pending == 1
    held.released.set()
    assert monitor.flush(5.0)
    assert score(monitor.last_result) == 0.5
    assert monitor.stats().outcomes == {"evaluated": 1}


async def test_where_a_loop_runs_nobody_waits_and_the_result_can_be_awaited(inline, case, held):
    monitor = inline(judge=held)
    run(monitor, case)
    assert monitor.last_result is None
    held.released.set()
    assert score(await monitor.result()) == 0.5
    assert score(monitor.last_result) == 0.5


async def test_a_judge_that_needs_the_applications_loop_gets_it(inline, case):
    loop = asyncio.get_running_loop()

    class OnTheSameLoop(ScriptedJudge):
        async def extract_statements(self, query, response):
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(30)
            return await super().extract_statements(query, response)

    monitor = inline(judge=OnTheSameLoop())
    run(monitor, case)
    assert score(await monitor.result()) == 0.5
    assert score(await monitor.aevaluate(case)) == 0.5


async def test_each_task_finds_its_own_run_and_any_run_by_its_id(inline, case):
    monitor = inline()

    async def request(answer):
        run(monitor, case.model_copy(update={"response": answer}), answer)
        await asyncio.sleep(0)
        return (await monitor.result()).case.response

    answers = [f"Answer {number} is this." for number in range(20)]
    assert await asyncio.gather(*map(request, answers)) == answers
    assert (await monitor.result(answers[3])).case.response == answers[3]
    assert await monitor.result("unknown") is None
    assert await monitor.result() is None


def test_a_run_that_is_not_taken_has_no_result_and_nobody_waits(inline, case):
    monitor = inline()
    handle = monitor.begin("r")
    monitor.close()
    assert not handle.submit(case)
    assert monitor.last_result is None
    assert monitor.stats().outcomes == {"shutdown": 1}


def test_a_direct_evaluation_is_a_run_like_any_other_but_never_sampled_out(monitor_of, case):
    got = []
    monitor = monitor_of(sample_rate=0.0, on_result=got.append)
    result = monitor.evaluate(case, pipeline="shop", run_id="r1", session_id="s")
    assert (result.run.run_id, result.run.session_id, result.pipeline) == ("r1", "s", "shop")
    assert result.sampling_probability == 1.0
    assert monitor.flush(5.0)
    assert got == [result]
    assert monitor.stats().outcomes == {"evaluated": 1}


def test_it_gives_up_waiting_at_its_limit_and_the_run_goes_on(monitor_of, case, held):
    monitor = monitor_of(judge=held)
    with pytest.raises(EvaluationTimeout):
        monitor.evaluate(case, timeout=0.01)
    held.released.set()
    assert monitor.flush(5.0)
    assert monitor.stats().outcomes == {"evaluated": 1}


async def test_a_cancelled_caller_stops_waiting_and_the_run_goes_on(monitor_of, case, held):
    monitor = monitor_of(judge=held)
    caller = asyncio.create_task(monitor.aevaluate(case))
    await asyncio.to_thread(held.entered.wait, 30)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    held.released.set()
    assert await monitor.aflush(5.0)
    assert monitor.stats().outcomes == {"evaluated": 1}


def test_it_says_why_there_is_no_result(monitor_of, case):
    with pytest.raises(NotEvaluated, match="disabled"):
        monitor_of(enabled=False).evaluate(case)
    closed = monitor_of()
    closed.close()
    with pytest.raises(NotEvaluated) as caught:
        closed.evaluate(case)
    assert caught.value.reason == "shutdown"
    broken = monitor_of(judge=ScriptedJudge(failures={"evaluate_relevance": SystemExit(1)}))
    with pytest.raises(NotEvaluated, match="incomplete_run"):
        broken.evaluate(case)
    with pytest.raises(TypeError, match="RAGTestCase"):
        monitor_of().evaluate("no case")


def test_a_queued_run_that_a_shutdown_drops_is_not_waited_for(monitor_of, case, held):
    monitor = monitor_of(judge=held, concurrency=1)
    monitor.submit(case)
    assert held.entered.wait(30)
    outcome = []

    def ask():
        try:
            monitor.evaluate(case)
        except NotEvaluated as error:
            outcome.append(error.reason)

    caller = threading.Thread(target=ask)
    caller.start()
    while monitor.stats().started < 2:
        caller.join(0.001)
    closing = threading.Thread(target=monitor.close, args=(0.0,))
    closing.start()
    caller.join(30)
    held.released.set()
    closing.join(30)
    assert outcome == ["shutdown"]


def test_it_may_be_awaited_in_on_result_even_when_every_lane_is_there(monitor_of, case):
    scores = []

    async def on_result(result):
        scores.append(score(await monitor.aevaluate(case)))

    monitor = monitor_of(metrics=FAITHFULNESS, on_result=on_result, concurrency=1)
    monitor.submit(case)
    monitor.submit(case)
    assert monitor.flush(5.0)
    assert scores == [0.5, 0.5]
    assert monitor.stats().outcomes == {"evaluated": 4}


def test_called_synchronously_in_on_result_it_refuses_instead_of_waiting_for_itself(
    monitor_of, case
):
    errors = []

    def on_result(result):
        try:
            monitor.evaluate(case)
        except RuntimeError as error:
            errors.append(str(error))

    monitor = monitor_of(on_result=on_result)
    monitor.submit(case)
    assert monitor.flush(5.0)
    assert "aevaluate" in errors[0]
    assert monitor.stats().started == 1


def test_an_inline_run_that_ends_on_the_worker_does_not_wait_for_itself(inline, case):
    ended = []

    def on_result(result):
        if not ended:
            ended.append(handle.submit(case))

    monitor = inline(on_result=on_result)
    handle = monitor.begin("ended by the callback")
    run(monitor, case)
    assert monitor.flush(5.0)
    assert ended == [True]
    assert monitor.flush(5.0)  # for the run that came while the first one waited
    assert monitor.stats().outcomes == {"evaluated": 2}


def test_asking_for_a_result_is_not_capturing(monitor_of, case):
    with suppress():
        assert monitor_of(metrics=FAITHFULNESS).evaluate(case).results


def test_a_complaint_about_an_old_answer_is_not_waited_for(inline, case, held):
    sampling = Sampling(rate=0.0, rules=[OnFeedback()])
    monitor = inline(judge=held, sampling=sampling, inline_timeout=3600.0)
    assert not run(monitor, case)
    complaining = threading.Thread(target=monitor.feedback, args=("r", False), daemon=True)
    complaining.start()
    complaining.join(5.0)
    was_waiting = complaining.is_alive()
    held.released.set()
    assert monitor.flush(5.0)
    assert not was_waiting
    assert score(monitor.last_result) == 0.5


async def test_a_run_is_found_by_the_id_object_its_framework_has(inline, case):
    monitor, run_id = inline(), uuid.uuid4()
    run(monitor, case, str(run_id))
    assert score(await monitor.result(run_id)) == 0.5


async def test_results_are_kept_for_a_bounded_number_of_runs(inline, case, monkeypatch):
    monkeypatch.setattr(inline_module, "_KEPT", 3)
    monitor = inline()
    for number in range(5):
        run(monitor, case, str(number))
    found = [await monitor.result(str(number)) for number in range(5)]
    assert [result is not None for result in found] == [False, False, True, True, True]


async def test_results_are_kept_as_far_as_their_texts_fit(inline, case, monkeypatch):
    monkeypatch.setattr(inline_module, "_KEPT_BYTES", 2 * case.size)
    monitor = inline()
    for run_id in ("a", "b", "c", "c"):
        run(monitor, case, run_id)
    assert await monitor.result("a") is None
    assert [score(await monitor.result(run_id)) for run_id in "bc"] == [0.5, 0.5]
    run(monitor, case.model_copy(update={"query": "q" * 10_000}), "large")
    assert score(await monitor.result("large")) == 0.5
    assert await monitor.result("c") is None
