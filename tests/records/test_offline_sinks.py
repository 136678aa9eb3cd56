import time

import pytest

from ragaliq import ConfigurationError, RAGTestCase, SinkError, evaluate
from ragaliq.errors import StoreError
from ragaliq.offline.journal import EvaluationJournal
from ragaliq.records.results_file import read_results_file
from ragaliq.records.store import read_records
from ragaliq.scoring.scorer import Scorer
from ragaliq.testing import ScriptedJudge


@pytest.fixture
def cases():
    return [
        RAGTestCase(id=f"case-{number}", query="q", context=["Alpha is one."], response="Alpha.")
        for number in range(5)
    ]


def test_results_of_a_run_over_cases_are_stored(cases, tmp_path):
    run = evaluate(cases, judge=ScriptedJudge(), sinks=[f"sqlite:///{tmp_path}/s.db"], pipeline="p")
    records = list(read_records(tmp_path / "s.db", pipeline="p"))
    assert {record.case_id for record in records} == {case.id for case in cases}
    assert all(record.case is None and record.lag is None for record in records)
    assert run.sinks["sqlite"].written == 5


def test_a_second_run_over_the_same_cases_is_kept_beside_the_first(cases, tmp_path):
    for _ in range(2):
        evaluate(cases, judge=ScriptedJudge(), sinks=[f"sqlite:///{tmp_path}/s.db"])
    assert len(list(read_records(tmp_path / "s.db"))) == 10


def test_texts_are_stored_redacted_when_asked_for(cases, tmp_path):
    evaluate(
        cases,
        judge=ScriptedJudge(),
        sinks=[f"sqlite:///{tmp_path}/s.db"],
        capture_content=True,
        redact=lambda text, _: text.replace("Alpha", "■"),
    )
    record = next(read_records(tmp_path / "s.db"))
    assert (record.case.response, record.case.context[0]) == ("■.", "■ is one.")


def test_a_sink_that_fails_does_not_fail_the_run(cases, list_sink):
    sink = list_sink(*[SinkError("no", kind="unauthorized", permanent=True)] * 9)
    run = evaluate(cases, judge=ScriptedJudge(), sinks=[sink])
    assert len(run) == 5
    assert run.sinks["list"].failed == 5


def test_more_cases_than_a_live_queue_holds_are_all_stored(cases, list_sink):
    sink = list_sink()
    many = [cases[0].model_copy(update={"id": str(number)}) for number in range(1100)]
    run = evaluate(many, judge=ScriptedJudge(), metrics=["relevance"], sinks=[sink])
    assert run.sinks["list"].written == len(sink.kept) == 1100


def test_what_is_no_sink_is_refused_before_anything_is_paid(cases):
    judge = ScriptedJudge()
    with pytest.raises(ConfigurationError, match="sink"):
        evaluate(cases, judge=judge, sinks=["nowhere"])
    assert judge.calls == []


@pytest.fixture
def choosing_sink():
    """A sink that passes every record over, or cannot say."""

    class Choosing:
        name = "choosing"

        def __init__(self, why):
            self.why, self.written = why, []

        def passes_over(self, record):
            if isinstance(self.why, Exception):
                raise self.why
            return self.why

        async def write(self, records):
            self.written += records

        async def aclose(self):
            pass

    return Choosing


async def test_a_record_that_one_sink_passes_over_and_another_lost_is_not_stored(
    cases, list_sink, choosing_sink
):
    failing = list_sink(SinkError("no", kind="unauthorized", permanent=True))
    sinks = [choosing_sink("it has no span"), failing]
    async with Scorer(ScriptedJudge(), sinks=sinks, waits_for_sinks=True) as scorer:
        with pytest.raises(StoreError):
            await scorer.score(cases[0])
    async with Scorer(ScriptedJudge(), sinks=sinks[:1], waits_for_sinks=True) as scorer:
        assert (await scorer.score(cases[0])).case.id == "case-0"


def test_a_sink_that_raises_where_it_should_choose_gets_the_record(cases, choosing_sink):
    sink = choosing_sink(RuntimeError("wrong"))
    run = evaluate(cases, judge=ScriptedJudge(), sinks=[sink])
    assert (len(run), len(sink.written), run.sinks["choosing"].written) == (5, 5, 5)


def test_a_sink_that_failed_gets_the_results_when_the_run_is_continued(cases, list_sink, tmp_path):
    journal, lost = tmp_path / "results.jsonl", SinkError("no", kind="unauthorized", permanent=True)
    evaluate(cases, judge=ScriptedJudge(), journal=journal, sinks=[list_sink(*[lost] * 9)])
    judge, sink = ScriptedJudge(), list_sink()
    again = evaluate(cases, judge=judge, journal=journal, sinks=[sink])
    assert judge.calls == []
    assert (len(again), again.sinks["list"].written) == (5, 5)
    earlier = list(read_results_file(journal))
    assert [(each.evaluation_id, each.created_at) for each in sink.kept.values()] == [
        (each.evaluation_id, each.created_at) for each in earlier
    ]
    assert all(
        each.case is None and each.row is None for each in sink.kept.values()
    )  # as from a first run
    assert earlier[0].case is not None


def test_a_store_that_has_the_results_is_not_written_again(cases, tmp_path):
    journal, store = tmp_path / "results.jsonl", tmp_path / "s.db"
    options = {"judge": ScriptedJudge(), "journal": journal, "sinks": [f"sqlite:///{store}"]}
    evaluate(cases[:3], **options, metrics=["faithfulness"], capture_content=True)
    again = evaluate(cases, **options, metrics=["faithfulness"])
    assert again.sinks["sqlite"].records == 2
    assert sum(record.case is not None for record in read_records(store)) == 3


def test_results_that_were_merged_or_moved_are_not_stored_twice(cases, list_sink, tmp_path):
    journal, sink = tmp_path / "results.jsonl", list_sink()
    options = {"judge": ScriptedJudge(), "journal": journal, "sinks": [sink]}
    evaluate(cases, **options, metrics=["faithfulness"])
    evaluate(cases, **options, metrics=["faithfulness", "relevance"])
    moved = [case.model_copy(update={"id": f"{case.id}-now"}) for case in cases]
    evaluate(moved, **options, metrics=["faithfulness", "relevance"])
    kept = {record.evaluation_id: list(record.results) for record in sink.kept.values()}
    assert sorted(kept.values()) == [["faithfulness"]] * 5 + [["relevance"]] * 5


def test_a_result_is_in_the_journal_before_a_sink_has_it(cases, monkeypatch, tmp_path):
    journal, early = tmp_path / "results.jsonl", []
    add = EvaluationJournal.add

    class Sink:
        name = "looking"

        async def write(self, records):
            early.extend(r for r in records if r.run.run_id not in journal.read_text())

        async def aclose(self):
            pass

    def add_late(self, evaluation):
        time.sleep(0.1)
        return add(self, evaluation)

    monkeypatch.setattr(EvaluationJournal, "add", add_late)
    done = evaluate(cases[:2], judge=ScriptedJudge(), journal=journal, sinks=[Sink()])
    assert done.sinks["looking"].written == 2
    assert early == []  # a process killed in between would have stored it twice
