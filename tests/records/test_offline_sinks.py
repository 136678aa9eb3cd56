import pytest

from ragaliq import ConfigurationError, RAGTestCase, SinkError, evaluate
from ragaliq.errors import StoreError
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
