"""Inside `suppress()` nothing is captured, and judges are always asked inside."""

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
