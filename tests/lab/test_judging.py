"""Having claims judged: failures apart, a limit on the cost, nothing asked twice."""

from contextlib import aclosing

import pytest
from bench_claims import ScriptedJudge, claim

from ragaliq import (
    BudgetExceeded,
    ConfigurationError,
    DatasetError,
    JudgeAPIError,
    JudgeRefusalError,
    JudgeTimeoutError,
    LocalJudge,
)
from ragaliq.lab.judging import claims_job, judge_claims, judged_claim
from ragaliq.offline.journal import EvaluationJournal
from ragaliq.scoring.scorer import CostCap


async def judged(claims, judge, **settings):
    async with aclosing(judge_claims(claims, judge, **settings)) as stream:
        return {row.id: row async for row in stream}


def judge_for(claims, *answers, **settings):
    return ScriptedJudge(dict(zip((c.claim for c in claims), answers, strict=True)), **settings)


async def test_support_is_read_from_verdict_and_confidence():
    claims = [claim(n) for n in range(3)]
    answers = ("SUPPORTED", 0.9), ("NOT_ENOUGH_INFO", 0.9), ("CONTRADICTED", 0.6)
    rows = await judged(claims, judge_for(claims, *answers))
    assert [rows[c.id].support for c in claims] == pytest.approx([0.9, 0.1, 0.4])
    assert [rows[c.id].is_right for c in claims] == [True, False, False]


async def test_failures_are_kept_apart_by_kind_and_have_no_verdict_but_a_cost():
    claims = [claim(n) for n in range(4)]
    failing = JudgeRefusalError("no"), JudgeTimeoutError("late"), JudgeAPIError("down")
    rows = await judged(claims, judge_for(claims, *failing, ("SUPPORTED", 1.0), cost=0.5))
    statuses = [rows[c.id].failure for c in claims]
    assert statuses == ["judge_refused", "judge_timeout", "judge_error", None]
    assert [rows[c.id].support for c in claims] == [None, None, None, 1.0]
    assert not any(rows[c.id].is_right for c in claims[:3])
    assert [rows[c.id].usage.cost_usd for c in claims] == [0.5] * 4


async def test_a_judge_that_does_not_answer_in_time_is_counted_as_such():
    class Silent(LocalJudge):
        async def verify_claim(self, claim, context):
            import asyncio

            await asyncio.Event().wait()

    rows = await judged([claim(1)], Silent(), deadline=0.01)
    assert rows["c0001"].failure == "judge_timeout"


async def test_what_is_no_error_of_a_judge_is_a_failure_too():
    class Unreadable(LocalJudge):
        async def verify_claim(self, claim, context):
            raise DatasetError("its table cannot be read")

    [row] = (await judged([claim(1)], Unreadable())).values()
    assert (row.failure, row.error_type, row.support) == ("judge_error", "DatasetError", None)


async def test_no_claim_is_begun_once_the_money_is_spent():
    claims = [claim(n) for n in range(10)]
    judge = judge_for(claims, *[("SUPPORTED", 1.0)] * 10, cost=0.4)
    with pytest.raises(BudgetExceeded, match=r"\$1\.2000 is spent"):
        await judged(claims, judge, cap=CostCap(1.0))
    assert len(judge.asked) == 3


async def test_a_limit_needs_a_price():
    claims = [claim(n) for n in range(2)]
    judge = judge_for(claims, *[("SUPPORTED", 1.0)] * 2, cost=None)
    with pytest.raises(ConfigurationError, match="is not known"):
        await judged(claims, judge, cap=CostCap(1.0))


async def test_a_journal_has_no_text_asks_failures_again_and_leaves_labels_to_the_data(tmp_path):
    claims, path = [claim(n) for n in range(2)], tmp_path / "j.jsonl"

    async def begin(*answers):
        judge = judge_for(claims, *answers, cost=0.25)
        journal = EvaluationJournal(path, keeps_text=False, retry_failed=True)
        job = claims_job(claims, judge, concurrency=1, deadline=9.0, cap=None, journal=journal)
        new = [judged_claim(claims[1], each) async for each in job]
        held = {each.row: judged_claim(claims[each.row - 1], each) for each in journal.results()}
        return judge.asked, new, held, job.cap.spent.cost_usd

    await begin(("SUPPORTED", 0.8), JudgeAPIError("down"))
    assert "says so" not in path.read_text()
    path.write_bytes(path.read_bytes() + b'{"cut short')
    claims[0] = claim(0, supported=False)
    asked, [new], held, cost = await begin(("SUPPORTED", 0.1), ("SUPPORTED", 0.9))
    assert asked == [claims[1].claim]
    assert (held[1].verdict, held[1].support, held[1].is_right) == ("SUPPORTED", 0.8, False)
    assert held[2] == new
    assert cost == 0.5
