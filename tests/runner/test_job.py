"""Jobs in Python: resumed from a journal, capped, repeated, held to goals."""

import json
from contextlib import aclosing

import pytest

from ragaliq import (
    ConfigurationError,
    DatasetError,
    EvaluationJob,
    EvaluationJournal,
    FaithfulnessEvaluator,
    JudgeAPIError,
    JudgeUsage,
    RAGTestCase,
    Scorer,
    ScoringPolicy,
    evaluate,
)
from ragaliq.records.results_file import read_results_file
from ragaliq.testing import ScriptedJudge


def cases(number):
    return [
        RAGTestCase(id=str(n), query="q", context=["Alpha is one."], response="Alpha is one.")
        for n in range(number)
    ]


def wrong(case):
    return case.model_copy(update={"response": "Beta is two."})


def scorer(judge=None, metrics=("faithfulness",)):
    return Scorer(judge or ScriptedJudge(), metrics, policy=ScoringPolicy.LIVE)


async def run(job):
    return [evaluation async for evaluation in job]


async def first(job, number):
    """Take some of a job's evaluations and stop it, as an end in the middle does."""
    taken = []
    async with aclosing(aiter(job)) as evaluations:
        async for evaluation in evaluations:
            taken.append(evaluation)
            if len(taken) == number:
                break
    return taken


async def test_without_a_journal_it_yields_every_evaluation_and_adds_them_up():
    job = EvaluationJob([*cases(2), wrong(cases(3)[2])], scorer(), repeats=2)
    assert len(await run(job)) == 6
    assert (job.summary.records, job.summary.cases) == (6, 3)
    assert [bad.id for bad in job.worst] == ["2"]
    assert not job.is_cut


async def test_a_job_that_was_stopped_is_continued_by_the_next_one(tmp_path):
    journal, judge = tmp_path / "results.jsonl", ScriptedJudge()
    stopped = EvaluationJob(cases(6), scorer(judge), journal=journal, concurrency=1)
    assert len(await first(stopped, 2)) == 2

    rest = EvaluationJob(cases(6), scorer(judge), journal=journal)
    assert len(await run(rest)) == 4
    assert rest.summary.records == 6
    assert len({record.run.run_id for record in read_results_file(journal)}) == 6


async def test_what_was_changed_since_is_judged_again_and_what_is_gone_counts_for_nothing(tmp_path):
    journal = tmp_path / "results.jsonl"
    await run(EvaluationJob(cases(4), scorer(), journal=journal))
    now = [wrong(cases(1)[0]), *cases(3)[1:]]
    job = EvaluationJob(now, scorer(), journal=journal)
    assert [evaluation.case.id for evaluation in await run(job)] == ["0"]
    assert job.journal.held == (1, 0, 1)
    assert (job.summary.records, job.summary.passing) == (3, (2, 3))


async def test_added_metrics_are_measured_alone_and_yielded_with_the_earlier_ones(tmp_path):
    journal = tmp_path / "results.jsonl"
    await run(EvaluationJob(cases(2), scorer(), journal=journal))
    judge = ScriptedJudge(failures={"extract_statements": JudgeAPIError("asked again")})
    job = EvaluationJob(cases(2), scorer(judge, ("faithfulness", "relevance")), journal=journal)
    evaluations = await run(job)
    assert [set(each.results) for each in evaluations] == [{"faithfulness", "relevance"}] * 2
    assert all(each.results["faithfulness"].score == 1.0 for each in evaluations)
    assert job.summary.records == 2


async def test_failures_are_retried_only_where_the_journal_says_so(tmp_path):
    path = tmp_path / "results.jsonl"
    down = ScriptedJudge(failures={"extract_statements": JudgeAPIError("down")})
    await run(EvaluationJob(cases(2), scorer(down), journal=path))

    job = EvaluationJob(cases(2), scorer(), journal=path)
    assert (await run(job), job.journal.failed) == ([], 2)
    job = EvaluationJob(cases(2), scorer(), journal=EvaluationJournal(path, retry_failed=True))
    assert len(await run(job)) == 2


async def test_a_journal_made_under_other_settings_is_refused_and_stays_as_it_is(tmp_path):
    path = tmp_path / "results.jsonl"
    await run(EvaluationJob(cases(1), scorer(), journal=path))
    before = path.read_bytes()
    other = EvaluationJob(cases(1), scorer(metrics=[FaithfulnessEvaluator(0.9)]), journal=path)
    with pytest.raises(DatasetError, match="other settings"):
        await run(other)
    assert path.read_bytes() == before
    await run(EvaluationJob(cases(1), scorer(), journal=path))  # nobody holds it any more


async def test_a_journal_keeps_no_texts_where_it_is_told_so(tmp_path):
    path = tmp_path / "results.jsonl"
    await run(EvaluationJob(cases(1), scorer(), journal=EvaluationJournal(path, keeps_text=False)))
    assert "Alpha" not in path.read_text()
    assert json.loads(path.read_text().splitlines()[1])["case_digest"]


async def test_the_cap_counts_what_the_journal_has_cost(tmp_path):
    path = tmp_path / "results.jsonl"

    def dear():
        return ScriptedJudge(usage=JudgeUsage(requests=1, cost_usd=0.25))

    job = EvaluationJob(cases(9), scorer(dear()), journal=path, max_cost=1.0, concurrency=1)
    begun = len(await run(job))
    assert (job.is_cut, 0 < begun < 9) == (True, True)
    again = EvaluationJob(cases(9), scorer(dear()), journal=path, max_cost=1.0, concurrency=1)
    assert (await run(again), again.is_cut, again.summary.records) == ([], True, begun)


@pytest.mark.parametrize(
    ("goal", "problem"),
    [
        ("faithfulness=0.5", ""),
        ("faithfulness=0.9", "faithfulness has a mean of 0.5000, below 0.9"),
        (0.5, ""),
        (0.75, "1 of 2 answers pass, asked for 0.75"),
    ],
)
async def test_goals_say_what_is_wrong(goal, problem):
    job = EvaluationJob([cases(1)[0], wrong(cases(2)[1])], scorer(), goals=[goal])
    await run(job)
    assert [said for _, said in job.problems] == [problem]


@pytest.mark.parametrize(
    ("wrong_setting", "said"),
    [
        ({"goals": ["relevance=0.5"]}, "relevance is not measured"),
        ({"goals": ["faithfulness=nine"]}, "METRIC=MEAN"),
        ({"repeats": 0}, "repeats must be at least 1"),
        ({"concurrency": 0}, "concurrency must be at least 1"),
        ({"max_cost": -1.0}, "max_cost must be US dollars"),
    ],
)
def test_a_wrong_setting_is_named(wrong_setting, said):
    with pytest.raises(ConfigurationError, match=said):
        EvaluationJob([], scorer(), **wrong_setting)


def test_evaluate_continues_a_journal_and_returns_all_of_it(tmp_path):
    judge, journal = ScriptedJudge(), tmp_path / "results.jsonl"
    options = {"metrics": ["faithfulness"], "judge": judge, "journal": journal}
    evaluate(cases(2), **options)
    asked = dict(judge.call_counts)
    run = evaluate([*cases(2), wrong(cases(3)[2])], **options, goals=["faithfulness=0.9"])
    assert [each.case.id for each in run] == ["0", "1", "2"]
    assert [each.results["faithfulness"].score for each in run] == [1.0, 1.0, 0.0]
    assert judge.call_counts["extract_statements"] == asked["extract_statements"] + 1
    assert run.problems == ("faithfulness has a mean of 0.6667, below 0.9",)
