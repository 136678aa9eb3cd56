"""A result with a value that nothing can store: it is counted, and keeps no other one out."""

import asyncio
from dataclasses import replace

import pytest

from ragaliq import ClaimDetail, EvaluationResult, RAGTestCase, SinkError
from ragaliq.core.results import Evaluation, JudgeUsage
from ragaliq.records import SinkSet, evaluation_record
from ragaliq.records.sinks import SinkLimits
from ragaliq.records.store import SQLiteStore, read_records

HALF_A_PAIR = "judge \ud800"
CLAIM = ClaimDetail(claim="c", verdict=None)


@pytest.fixture
def stored(tmp_path, case, run_of, result_of):
    """Stores one result between two good ones; the counts, and the runs that are stored."""

    def store(**fields):
        sinks = SinkSet([SQLiteStore(tmp_path / "s.db")], limits=SinkLimits(backoff=0.01))
        odd = result_of().model_copy(update=fields)
        for number, result in enumerate((result_of(), odd, result_of())):
            in_run = case.model_copy(update={"run": run_of(number)})
            sinks.record(Evaluation(case=in_run, results={"faithfulness": result}))
        assert sinks.close(20.0)
        records = list(read_records(tmp_path / "s.db"))
        return sinks.stats()["sqlite"], sorted(record.run.run_id for record in records)

    return store


@pytest.mark.parametrize(
    "fields",
    [
        {"judge": HALF_A_PAIR},
        {"model": HALF_A_PAIR},
        {"evaluator_name": HALF_A_PAIR},
        {"calibration": HALF_A_PAIR},
        {"claims": (ClaimDetail(claim="c", verdict=None, decided_by=HALF_A_PAIR),)},
    ],
)
def test_half_a_surrogate_pair_in_a_name_becomes_another_sign(stored, fields):
    stats, runs = stored(**fields)
    assert (stats.written, runs) == (3, ["run-0", "run-1", "run-2"])


def test_what_a_subclass_adds_is_not_stored_and_an_empty_model_is_none(record_of, result_of):
    class Weighed(ClaimDetail):
        weight: str = "zebra"

    class Noted(EvaluationResult):
        note: str = "zebra"

    result = Noted(**dict(result_of(model="")) | {"claims": (Weighed(**dict(CLAIM)),)})
    (stored,) = record_of(results=[result]).results.values()
    assert (type(stored), type(stored.claims[0])) == (EvaluationResult, ClaimDetail)
    assert stored.model is None


@pytest.mark.parametrize("number", [10**400, -(10**400), float("inf"), float("nan")])
def test_metadata_that_no_json_number_holds_is_dropped(result_of, captured, number):
    chunk = {"text": "c", "metadata": {"page": 7, "size": number}}
    case = RAGTestCase(query="q", context=[chunk], response="a", metadata={"n": number, "m": True})
    evaluation = Evaluation(case=case, results={"f": result_of()})
    stored = evaluation_record(evaluation, content=captured).case
    assert (stored.metadata, stored.context[0].metadata) == ({"m": True}, {"page": 7})


def test_names_are_cut(record_of, result_of):
    record = record_of(results=[result_of().model_copy(update={"judge": "j" * 10**6})])
    assert len(record.results["faithfulness"].judge) < 1000


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"usage": JudgeUsage(input_tokens=10**30)}, "unstorable"),
        ({"threshold": float("nan")}, "unrecordable"),
        ({"duration": "soon"}, "unrecordable"),
        ({"claims": (CLAIM.model_copy(update={"confidence": float("nan")}),)}, "unrecordable"),
        ({"claims": (CLAIM.model_copy(update={"verdict": "MAYBE"}),)}, "unrecordable"),
    ],
)
def test_a_number_that_no_column_or_reader_takes_is_counted_and_the_others_are_stored(
    stored, fields, error
):
    stats, runs = stored(**fields)
    assert (stats.written, stats.failed, stats.pending) == (2, 1, 0)
    assert stats.errors == {error: 1}
    assert runs == ["run-0", "run-2"]


def test_what_no_json_can_hold_is_counted_and_the_others_are_stored(tmp_path, record_of):
    odd = record_of(1)
    odd = odd.model_copy(update={"case_id": HALF_A_PAIR})
    store = SQLiteStore(tmp_path / "s.db")

    async def write():
        try:
            await store.write([record_of(0), odd, record_of(2)])
        finally:
            await store.aclose()

    with pytest.raises(SinkError, match="cannot") as refused:
        asyncio.run(write())
    assert refused.value.permanent
    assert refused.value.undelivered == [odd]
    assert len(list(read_records(tmp_path / "s.db"))) == 2


def test_tags_pass_the_redactor_as_every_text_does(result_of, captured):
    policy = replace(captured, redact=lambda text, kind: text.replace("Ms Zebra", "■"))
    case = RAGTestCase(query="q", context=["c"], response="a", tags=["vip", "for Ms Zebra"])
    evaluation = Evaluation(case=case, results={"f": result_of()})
    assert evaluation_record(evaluation, content=policy).case.tags == ["vip", "for ■"]

    policy = replace(captured, redact=lambda text, kind: None)
    assert evaluation_record(evaluation, content=policy).case.tags == []
