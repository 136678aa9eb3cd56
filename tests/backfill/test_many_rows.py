"""A table of many rows: of what was scored, only what goes into the table is kept."""

from __future__ import annotations

import gc

import pandas as pd

from ragaliq import RAGTestCase, score_batch
from ragaliq.core.results import EvaluationResult
from ragaliq.testing import ScriptedJudge

CONCURRENCY = 2


class Counting(ScriptedJudge):
    """Notes at every tenth question how many cases and results there are."""

    def __init__(self):
        super().__init__()
        self.asked = self.most = 0

    async def evaluate_relevance(self, query, response):
        self.asked += 1
        if self.asked % 10 == 0:  # looking at everything there is takes a second in a large process
            self.most = max(self.most, kept())
        return await super().evaluate_relevance(query, response)


def kept():
    kinds = (RAGTestCase, EvaluationResult)
    return sum(issubclass(type(thing), kinds) for thing in gc.get_objects())


def test_cases_and_results_are_not_kept_until_the_last_row():
    gc.collect()
    before, judge = kept(), Counting()
    rows = [{"question": "q", "contexts": ["c"], "answer": "a"}] * 40
    scored = score_batch(
        pd.DataFrame(rows), metrics=["relevance"], judge=judge, concurrency=CONCURRENCY
    )
    assert set(scored["relevance_status"]) == {"scored"}
    assert judge.asked == 40
    assert judge.most - before <= 6 * CONCURRENCY
