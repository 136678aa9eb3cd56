"""Whatever becomes of the evaluation, the application's result is untouched and it is counted."""

import asyncio
import threading

import pytest
from rag_parts import ANSWER, QUESTION, REFUNDS, rag_chain

from ragaliq.testing import ScriptedJudge

EXPECTED = (QUESTION, REFUNDS, ANSWER)
ALL_METHODS = ("extract_claims", "extract_statements", "verify_claims", "evaluate_relevance")


class NeverAnswering(ScriptedJudge):
    async def _called(self, method, **arguments):
        await asyncio.Event().wait()


class Held(ScriptedJudge):
    """Answers once it is released."""

    def __init__(self):
        super().__init__()
        self.started, self.release = threading.Event(), threading.Event()

    async def _called(self, method, **arguments):
        self.started.set()
        await asyncio.to_thread(self.release.wait, 30)


@pytest.mark.parametrize("error", [RuntimeError("boom"), SystemExit(3), TimeoutError()])
def test_a_judge_that_raises(new_watch, invoke, error):
    judge = ScriptedJudge(failures=dict.fromkeys(ALL_METHODS, error))
    watch = new_watch(judge=judge)
    assert invoke(rag_chain(), QUESTION, watch.config) == ANSWER
    stats = watch.stats
    assert sum(stats.outcomes.values()) == stats.started == 1
    # The worker goes on.
    assert invoke(rag_chain(), QUESTION, watch.config) == ANSWER
    assert watch.stats.started == 2
    if isinstance(error, Exception):
        assert watch.triples == [EXPECTED] * 2
        for counts in watch.stats.evaluations.values():
            assert sum(counts.values()) == 2
            assert "scored" not in counts
    else:
        assert watch.incomplete == {"internal_error": 2}


def test_a_judge_that_never_answers_is_given_up_at_the_deadline(new_watch, invoke):
    watch = new_watch(judge=NeverAnswering(), deadline=0.1)
    assert invoke(rag_chain(), QUESTION, watch.config) == ANSWER
    assert watch.stats.evaluations == {
        "faithfulness": {"judge_timeout": 1},
        "relevance": {"judge_timeout": 1},
    }
    assert watch.results[0].results["relevance"].error_type == "JudgeTimeoutError"


def test_with_a_full_queue_further_runs_are_counted_and_not_waited_for(new_watch, invoke):
    judge = Held()
    watch = new_watch(judge=judge, concurrency=1, max_queue=2)
    chain = rag_chain()
    assert invoke(chain, QUESTION, watch.config) == ANSWER
    assert judge.started.wait(30)
    for _ in range(6):
        assert invoke(chain, QUESTION, watch.config) == ANSWER
    stats = watch.monitor.stats()
    assert stats.outcomes == {"queue_full": 4}
    assert (stats.started, stats.pending) == (7, 3)
    judge.release.set()
    assert watch.stats.outcomes == {"queue_full": 4, "evaluated": 3}


def test_after_the_monitor_is_closed_the_chain_still_works(new_watch, invoke):
    watch = new_watch()
    watch.monitor.close(5)
    assert invoke(rag_chain(), QUESTION, watch.config) == ANSWER
    assert watch.stats.outcomes == {"shutdown": 1}
