"""Inside `suppress()` nothing is captured, and judges are always asked inside."""

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from ragaliq import FaithfulnessEvaluator, RelevanceEvaluator, evaluate, is_suppressed, suppress
from ragaliq.testing import ScriptedJudge
from run_logs import ended_run


class Watching(ScriptedJudge):
    def __init__(self):
        super().__init__()
        self.seen = []

    async def evaluate_relevance(self, query, response):
        self.seen.append(is_suppressed())
        return await super().evaluate_relevance(query, response)

    async def extract_statements(self, query, response):
        self.seen.append(is_suppressed())
        return await super().extract_statements(query, response)


def test_a_judge_is_never_taken_for_the_application_offline_and_live(case, monitor_of):
    judge = Watching()
    evaluate([case], judge=judge)
    monitor_of(judge=judge).evaluate(case)
    RelevanceEvaluator().evaluate_sync(case, judge)
    FaithfulnessEvaluator().evaluate_sync(case, judge)
    assert judge.seen == [True] * 6
    assert not is_suppressed()


OWN_POOL = ThreadPoolExecutor(2)


class AskingElsewhere(Watching):
    """Asks in a pool, whose threads know nothing of the caller by themselves."""

    def __init__(self, pool):
        super().__init__()
        self.pool = pool

    async def evaluate_relevance(self, query, response):
        loop = asyncio.get_running_loop()
        self.seen.append(await loop.run_in_executor(self.pool, is_suppressed))
        return await ScriptedJudge.evaluate_relevance(self, query, response)


@pytest.mark.parametrize("pool", [None, OWN_POOL], ids=["the loop's", "the judge's"])
def test_what_a_judge_asks_in_an_executor_is_not_captured(case, monitor_of, pool):
    judge = AskingElsewhere(pool)
    evaluate([case], judge=judge, metrics=["relevance"])
    monitor_of(judge=judge, metrics=["relevance"]).evaluate(case)
    assert judge.seen == [True, True]


class AskingInItsOwnThreads(ScriptedJudge):
    """Asks the application that is judged, from threads that know of no context."""

    asked = "{}"

    async def evaluate_relevance(self, query, response):
        question = f"Is this good? {self.asked.format(response, response.partition('. ')[0])}."
        await asyncio.wrap_future(OWN_POOL.submit(answered, self.monitor, question))
        return await super().evaluate_relevance(query, response)


def answered(monitor, question):
    if run := monitor.begin(uuid4().hex):
        said = (
            "Refunds are paid within five working days to your card. Nobody knows more than that."
        )
        run.submit(ended_run(question, ["Refunds take five days."], said))


@pytest.mark.parametrize("asked", ["{0}", "{1}"], ids=["the answer", "a claim"])
def test_an_application_that_a_judge_asks_from_its_own_threads_is_not_judged(monitor_of, asked):
    judge = AskingInItsOwnThreads()
    judge.asked = asked
    judge.monitor = monitor_of(judge=judge, metrics=["relevance"])
    answered(judge.monitor, "How long do refunds take, please?")
    assert judge.monitor.flush(10.0)
    stats = judge.monitor.stats()
    while stats.pending:
        assert judge.monitor.flush(10.0)
        stats = judge.monitor.stats()
    assert stats.outcomes == {"evaluated": 1, "incomplete_run": 1}
    assert stats.incomplete == {"judge_call": 1}
    answered(judge.monitor, "How long do refunds take, please?")
    assert judge.monitor.flush(10.0)
    assert judge.monitor.stats().outcomes["evaluated"] == 2


class AskingInNoContext(ScriptedJudge):
    """Asks the application in a task whose context is not the judge's."""

    async def evaluate_relevance(self, query, response):
        async def ask():
            answered(self.monitor, "Rate it from one to five.")

        await asyncio.create_task(ask(), context=contextvars.Context())
        return await super().evaluate_relevance(query, response)


def test_what_begins_on_the_thread_that_judges_is_not_captured(monitor_of):
    judge = AskingInNoContext()
    judge.monitor = monitor_of(judge=judge, metrics=["relevance"])
    answered(judge.monitor, "How long do refunds take, please?")
    assert judge.monitor.flush(10.0)
    assert judge.monitor.stats().started == 1


def test_a_block_may_be_left_in_another_context_than_it_was_entered_in():
    def request():
        with suppress():
            yield

    spanning = request()
    contextvars.copy_context().run(next, spanning)
    assert contextvars.copy_context().run(next, spanning, "ended") == "ended"
    assert not is_suppressed()


def test_blocks_may_be_nested():
    with suppress():
        with suppress():
            pass
        assert is_suppressed()
    assert not is_suppressed()
