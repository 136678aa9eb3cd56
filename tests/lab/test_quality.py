"""Quality as people would judge it, from drawn labels: the month of the example, and by hand."""

import asyncio
import importlib.util
import json
from datetime import datetime
from pathlib import Path
from random import Random

import pytest

from ragaliq import RAGTestCase, RunInfo, SQLiteStore, read_records
from ragaliq.core.results import ClaimDetail, EvaluationResult
from ragaliq.errors import DatasetError
from ragaliq.lab.labelling import LabelFile, claims_of_batch
from ragaliq.lab.labels import AnchorFile, draw_answers, read_labels
from ragaliq.lab.quality import quality_of
from ragaliq.lab.quality_svg import quality_svg
from ragaliq.records import EvaluationRecord
from ragaliq.records.sqlite_file import companion_file
from ragaliq.records.store import StoredScore, read_scores, scores_of

MONDAY, DAY = 1_791_158_400.0, 86_400.0


def record(number, *, text=True, confidence=0.97, time=MONDAY, claims=2, **run):
    """An answer of claims, the first of which is wrong in every tenth."""
    texts = [f"Claim {part} of {number}." for part in range(claims)]
    details = tuple(
        ClaimDetail(claim=each if text else "", verdict="SUPPORTED", confidence=confidence)
        for each in texts
    )
    result = EvaluationResult(
        evaluator_name="faithfulness",
        score=1.0,
        passed=True,
        claims=details,
        judge="one",
        fingerprint="one-1",
    )
    case = RAGTestCase(query="What?", context=["It is."], response=" ".join(texts))
    return EvaluationRecord(
        evaluation_id=f"e{number}",
        run=RunInfo(run_id=f"run-{number}", pipeline="shop", **run),
        case_id=f"run-{number}",
        created_at=time + number,
        results={"faithfulness": result},
        case=case if text else None,
    )


def stored(path, records):
    async def write():
        store = SQLiteStore(path)
        await store.write(records)
        await store.aclose()

    asyncio.run(write())
    return path


def label_all(path, batch, verdict=lambda claim: "SUPPORTED"):
    file = LabelFile(companion_file(path, "labels"))
    for claim in claims_of_batch(batch):
        file.append(claim, verdict(claim))
    return read_labels(companion_file(path, "labels"))


# Drawing.


def test_the_line_is_the_same_for_two_people_and_goes_on_where_it_stopped(tmp_path):
    store = stored(tmp_path / "live.db", [record(n) for n in range(60)])
    first = draw_answers(store, 10)
    assert [a.record.run.run_id for a in draw_answers(store, 10).answers] == [
        a.record.run.run_id for a in first.answers
    ]
    done = {a.record.run.run_id for a in first.answers}
    second = draw_answers(store, 50, done=done)
    assert {a.record.run.run_id for a in second.answers} | done == {f"run-{n}" for n in range(60)}
    assert max(a.place for a in first.answers) < min(a.place for a in second.answers)


def test_unsure_answers_are_drawn_more_often_and_all_have_a_chance(tmp_path):
    records = [record(n, confidence=0.5 if n % 2 else 0.999) for n in range(2000)]
    batch = draw_answers(stored(tmp_path / "live.db", records), 300)
    unsure = sum(int(a.record.run.run_id[4:]) % 2 for a in batch.answers)
    assert sorted({a.size for a in batch.answers}) == pytest.approx([0.2, 0.5**0.5])
    # Chances of 0.2 to 0.71: of ten drawn, eight are unsure.
    assert 0.72 < unsure / 300 < 0.84


def test_chances_follow_the_line_as_far_as_it_is_labelled(tmp_path):
    path = stored(tmp_path / "live.db", [record(n) for n in range(200)])
    labels = label_all(path, draw_answers(path, 20))
    reach = max(answer.draw.place for answer in labels.answers.values())
    size = 2 * (2 * 0.97 * 0.03) ** 0.5 / 2
    for each in labels.answers.values():
        assert labels.chance(each) == pytest.approx(size * reach)
    assert 0.05 < size * reach < 0.15


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([record(1, text=False)], "no texts of its 1 answers"),
        ([record(1, represents_traffic=False)], "no answers that were scored claim by claim"),
    ],
)
def test_what_cannot_be_labelled_is_said_with_its_reason(tmp_path, records, said):
    with pytest.raises(DatasetError, match=said):
        draw_answers(stored(tmp_path / "live.db", records), 5)


def test_an_answer_counts_once_all_its_claims_have_a_label(tmp_path):
    path = stored(tmp_path / "live.db", [record(n) for n in range(30)])
    batch = draw_answers(path, 10)
    file = LabelFile(companion_file(path, "labels"))
    for claim in claims_of_batch(batch)[:-1]:
        file.append(claim, "SUPPORTED")
    labels = read_labels(file.path)
    assert (len(labels.answers), labels.unfinished) == (9, 1)
    assert file.undo() is not None
    assert len(file.done) == 18
    with file.path.open("ab") as cut:
        cut.write(b'{"label": "SUPPO')
    assert len(read_labels(file.path).answers) == 9


@pytest.mark.parametrize(
    ("row", "field"), [('{"label": "MAYBE"}', "label"), ('{"label": 1, "score": 5.0}', "score")]
)
def test_a_line_that_is_no_label_is_named(tmp_path, row, field):
    path = tmp_path / "labels.jsonl"
    path.write_text(f'{row}\n{{"label": "SUPPORTED"}}\n')
    with pytest.raises(DatasetError, match=f"line 1: wrong or missing: {field}"):
        read_labels(path)


@pytest.mark.parametrize(("label", "score"), [(1, 1.0), (0, 0.0)])
def test_a_label_of_a_whole_answer_needs_no_score(tmp_path, label, score):
    draw = {"run_id": "r", "pipeline": "", "time": 1.0, "claim": 0, "claims": 1, "size": 1.0}
    row = {"label": label, "draw": draw | {"place": 0.5, "frame": {"until": 2.0}}}
    path = tmp_path / "live.labels.jsonl"
    path.write_text(json.dumps(row) + "\n")
    assert read_labels(path).answers["r"].score("faithfulness") == score


# Figures.


def test_scores_read_by_themselves_are_those_of_the_records(tmp_path):
    records = [record(n, sampling_probability=0.5, release="2.0") for n in range(5)]
    path = stored(tmp_path / "live.db", records)
    alone = list(read_scores(path))
    assert alone == [score for each in read_records(path) for score in scores_of(each)]
    assert {(score.weight, score.fingerprint, score.release) for score in alone} == {
        (2.0, "one-1", "2.0")
    }
    assert list(read_scores(path, metric="relevance")) == []


def test_labels_correct_a_judge_that_calls_everything_right(tmp_path):
    path = stored(tmp_path / "live.db", [record(n) for n in range(400)])
    batch = draw_answers(path, 60)

    def verdict(claim):
        return "CONTRADICTED" if int(claim.claim.split()[-1][:-1]) % 5 == 0 else "SUPPORTED"

    labels = label_all(path, batch, verdict)
    (series,) = quality_of(read_scores(path), labels)
    (week,) = series.weeks
    assert (week.title, week.answers, week.labels, week.labelled) == ("2026-10-05", 400, 120, 60)
    assert week.judge_alone.value == 1.0
    assert week.anchored.estimate.low < 0.8 < week.anchored.estimate.high
    assert series.total.anchored.estimate == week.anchored.estimate


def test_answers_that_came_after_the_draw_are_counted_and_not_spoken_for(tmp_path):
    path = stored(tmp_path / "live.db", [record(n) for n in range(50)])
    labels = label_all(path, draw_answers(path, 20))
    stored(path, [record(n) for n in range(50, 80)])
    (series,) = quality_of(read_scores(path), labels)
    assert series.total.uncovered == 30
    assert series.total.anchored.labelled + series.total.anchored.unlabelled == 50


def scores(count, mean, *, start=MONDAY, fingerprint="one-1", seed=0):
    random = Random(seed)
    rest = ("faithfulness", 0.0, 1.0, fingerprint, fingerprint, "", True)
    return [
        StoredScore(f"run-{start:.0f}-{n}", "shop", start + n * 60.0, *rest)._replace(
            score=sum(random.random() < mean for _ in range(4)) / 4
        )
        for n in range(count)
    ]


def test_a_new_judge_is_told_from_a_new_application():
    old = scores(1000, 0.95)
    new = scores(1000, 0.85, start=MONDAY + 7 * DAY, fingerprint="two-1", seed=1)
    # Both judged a hundred answers: the new one is 0.1 stricter, so the application is the same.
    both = [
        score._replace(
            time=MONDAY + 7 * DAY + number,
            fingerprint="two-1",
            judge="two-1",
            score=max(0.0, score.score - (0.25 if number % 5 < 2 else 0.0)),
        )
        for number, score in enumerate(old[:100])
    ]
    (series,) = quality_of([*old, *both, *new])
    (change,) = series.judge_changes
    assert change.pairs == 100
    assert change.by_judge.value == pytest.approx(-0.1)
    assert change.by_judge.high < 0.0
    assert change.by_application.low < 0.0 < change.by_application.high
    before, after = series.weeks
    assert before.joined.value == pytest.approx(before.judge_alone.value - 0.1, abs=0.02)
    assert after.joined == after.judge_alone


def test_the_picture_names_its_weeks_where_a_format_without_a_zero_is_not_known(monkeypatch):
    class Windows(datetime):
        def strftime(self, form):
            if "%-" in form:
                raise ValueError("Invalid format string")
            return super().strftime(form)

    monkeypatch.setattr("ragaliq.lab.quality_svg.datetime", Windows)
    assert ">5 Oct</text>" in quality_svg(quality_of(scores(20, 0.9)))


def test_without_answers_that_both_judged_nothing_is_blamed():
    new = scores(200, 0.85, start=MONDAY + 7 * DAY, fingerprint="two-1", seed=1)
    (series,) = quality_of([*scores(200, 0.95), *new])
    (change,) = series.judge_changes
    assert (change.by_judge, change.by_application, change.pairs) == (None, None, 0)
    assert series.weeks[0].joined is None


# The example, as a story.


@pytest.fixture(scope="module")
def month(tmp_path_factory):
    path = Path(__file__).parents[2] / "examples" / "quality" / "month.py"
    spec = importlib.util.spec_from_file_location("quality_month", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    store = tmp_path_factory.mktemp("month") / "month.db"
    asyncio.run(module.main(store))
    return store


@pytest.mark.slow
def test_a_month_has_its_monday_numbers_its_judges_and_its_alarm(month):
    labels = read_labels(companion_file(month, "labels"))
    anchors = AnchorFile(companion_file(month, "anchors")).anchors
    (series,) = quality_of(read_scores(month), labels, anchors)
    # Truth: 12 % of the answers are hard, and from the second day of the last week 45 %.
    easy, hard = 0.88 * 0.96 + 0.12 * 0.5, 0.55 * 0.96 + 0.45 * 0.5
    truths = [easy, easy, easy, (easy + 6 * hard) / 7]
    for week, truth in zip(series.weeks, truths, strict=True):
        estimate = week.anchored.estimate
        assert estimate.low <= truth <= estimate.high
        assert week.labelled == 40
    assert not series.weeks[1].judge_alone.low <= easy <= series.weeks[2].judge_alone.high
    (change,) = series.judge_changes
    assert change.by_judge.value < 0.0
    assert change.by_application.low < 0.0 < change.by_application.high
    (alarm,) = series.alarms
    assert (alarm.shift.direction, alarm.release, alarm.reference) == ("fell", "2.1", "release 2.0")
    assert MONDAY + 22 * DAY < alarm.time < MONDAY + 26 * DAY
    svg = quality_svg([series])
    assert svg.count("<circle") == 4
    assert "judge changed" in svg
    assert "alarm: fell" in svg


def test_a_line_of_anchors_is_kept_once_and_a_cut_one_is_dropped(tmp_path):
    path = stored(tmp_path / "live.db", [record(n) for n in range(3)])
    anchors = [anchor for answer in draw_answers(path, 3).answers for anchor in answer.anchors()]
    copy = AnchorFile(companion_file(path, "anchors"))
    copy.add(anchors[:2])
    copy.add(anchors[:2])
    with copy.path.open("ab") as cut:
        cut.write(b'{"run_id": "x", "pipel')
    again = AnchorFile(copy.path)
    assert again.anchors == anchors[:2]
    again.add(anchors[2:])
    whole = copy.path.read_text()
    assert [json.loads(line)["run_id"] for line in whole.splitlines()] == [
        anchor.run_id for anchor in anchors
    ]
    copy.path.write_text(whole.removesuffix("\n"))  # as an editor may leave it
    added = anchors[0].model_copy(update={"run_id": "one more"})
    AnchorFile(copy.path).add([added])
    assert AnchorFile(copy.path).anchors == [*anchors, added]
