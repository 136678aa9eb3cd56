"""Inside `suppress()` nothing is captured, and judges are always asked inside."""

import asyncio
import contextvars

from ragaliq import FaithfulnessEvaluator, RelevanceEvaluator, evaluate, is_suppressed, suppress
from ragaliq.testing import ScriptedJudge


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


class AskingElsewhere(Watching):
    """Asks in the loop's own pool, whose threads know nothing of the caller by themselves."""

    async def evaluate_relevance(self, query, response):
        loop = asyncio.get_running_loop()
        self.seen.append(await loop.run_in_executor(None, is_suppressed))
        return await ScriptedJudge.evaluate_relevance(self, query, response)


def test_what_a_judge_asks_in_the_loops_executor_is_not_captured(case, monitor_of):
    judge = AskingElsewhere()
    evaluate([case], judge=judge, metrics=["relevance"])
    monitor_of(judge=judge, metrics=["relevance"]).evaluate(case)
    assert judge.seen == [True, True]


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
