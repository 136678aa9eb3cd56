import json
import re
from datetime import UTC, datetime

import pytest

from ragaliq import RAGTestCase, evaluate
from ragaliq.core.results import Status
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.records.store import SQLiteStore
from ragaliq.reports import write_report

LIMIT = 15_000_000
START = 1_790_000_000.0


def data_of(path):
    page = path.read_text(encoding="utf-8")
    start = page.index('id="data">') + len('id="data">')
    return json.loads(page[start : page.index("</script>", start)])


@pytest.fixture
def page(tmp_path):
    return tmp_path / "new" / "report.html"


async def test_a_store_a_file_and_the_records_themselves_give_the_same_page(
    museum, results_file, tmp_path, page
):
    records = list(museum(30))
    store = SQLiteStore(tmp_path / "museum.db")
    await store.write(records)
    await store.aclose()
    sources = [records, results_file(records), tmp_path / "museum.db"]
    sources.append(f"sqlite:///{tmp_path / 'museum.db'}")
    pages = []
    for source in sources:
        assert write_report(source, page, title="Same").answers == 30
        pages.append(data_of(page))
    assert pages[0] == pages[1] == pages[2] == pages[3]


def test_the_page_begins_with_the_share_that_passes_and_what_the_judge_is_worth(tmp_path, page):
    texts = ["The shop opens at 9.", "The shop opens at 10.", ""]
    cases = [RAGTestCase(query="When?", context=texts[:1], response=text) for text in texts]
    evaluate(cases, metrics=["faithfulness"]).write_report(page)
    content = page.read_text()
    assert '<p class="lead">1 of 3 answers pass every metric.</p>' in content
    assert "<dt>Judge</dt><dd><bdi>local</bdi></dd>" in content
    assert "The embedded judge compares words, not meaning" in content
    assert "Distribution of scores</h2>" in content
    assert "<h2>Pipelines</h2>" not in content
    assert content.index('id="answers"') < content.index('id="charts"')


@pytest.mark.parametrize(
    "address", ["javascript:alert('{trace_id}')", "https://traces.example/", "traces/{trace_id}"]
)
def test_an_address_of_traces_that_could_not_be_followed_is_refused(museum, page, address):
    with pytest.raises(ConfigurationError, match="trace_id"):
        write_report(museum(1), page, trace_url=address)


def test_only_what_was_asked_for_is_reported(museum, results_file, page):
    source = results_file(museum(30))
    times = sorted(row[2] for row in _rows(source, page))
    since, until = datetime.fromtimestamp(times[10], UTC), float(times[20])
    assert write_report(source, page, since=since, until=until).answers == 10
    assert write_report(source, page, pipeline="visitors").answers == 20
    assert data_of(page)["pipelines"] == ["visitors"]


def _rows(source, page):
    write_report(source, page)
    return data_of(page)["rows"]


def test_the_worst_answers_are_in_full_and_the_page_says_what_is_not(museum, page):
    summary = write_report(museum(60), page, worst=7)
    data = data_of(page)
    assert (summary.answers, summary.listed, summary.in_full) == (60, 60, 7)
    assert len(data["answers"]) == 7
    assert "7 are here in full" in page.read_text()
    scores = [
        min(score for _, score, _ in row[5:] if score is not None) for row in data["rows"][:50]
    ]
    assert scores == sorted(scores)
    assert "0" in data["answers"]


def test_rows_beyond_the_limit_are_counted(museum, page, monkeypatch):
    monkeypatch.setattr("ragaliq.reports.report._MOST_ROWS", 20)
    summary = write_report(museum(50), page, worst=5)
    assert summary.listed == 20
    assert "the other 30 are not listed" in page.read_text()


@pytest.mark.slow
def test_ten_thousand_results_stay_under_the_limit(museum, page):
    summary = write_report(museum(10_000), page)
    assert summary.bytes == page.stat().st_size < LIMIT
    assert summary.listed == 10_000


def test_the_page_stays_small_whatever_the_texts_are(record_of, page):
    text = "<&\U0001f68b" * 10_000
    records = (_grown(record_of(number), text, number) for number in range(100))
    summary = write_report(records, page, worst=100)
    assert summary.bytes < LIMIT
    assert 0 < summary.in_full < 100


def _grown(record, text, number):
    case = record.case.model_copy(update={"response": text, "query": text[:8000]})
    return record.model_copy(update={"case": case, "evaluation_id": f"<{number}" * 20})


def test_without_texts_the_page_says_so_and_still_shows_verdicts(museum, page):
    write_report(museum(20, text=False), page)
    content, data = page.read_text(), data_of(page)
    assert "content capture was off" in content
    assert "Until when" not in content
    claims = data["answers"]["0"]["sets"][0]["claims"]
    assert claims
    assert all(claim["verdict"] and claim["text"] is None for claim in claims)
    assert data["answers"]["0"]["sets"][0]["answer"] is None
    assert data["series"][0]["charts"]["all"]["mean"]["n"] > 10


def test_claims_judged_once_for_two_metrics_are_shown_and_counted_once(record_of, page):
    record = next(
        record for record in map(record_of, range(9)) if record.results["faithfulness"].claims
    )
    write_report([record], page)
    (only,) = data_of(page)["answers"]["0"]["sets"]
    assert only["metrics"] == ["faithfulness", "hallucination"]
    assert sum(data_of(page)["rows"][0][4]) == len(record.results["faithfulness"].claims)


def test_each_claim_says_whether_its_confidence_is_a_probability(museum, page):
    write_report(museum(5), page)
    assert '"calibration":"uncalibrated"' in page.read_text(encoding="utf-8")
    assert "(uncalibrated)" in page.read_text(encoding="utf-8")


def test_evidence_is_cut_out_of_its_own_chunk(record_of, page):
    write_report([record_of(number) for number in range(20)], page)
    shown = [each for full in data_of(page)["answers"].values() for each in full["sets"]]
    marked = {piece for s in shown for c in s["chunks"] for piece, numbers in c["text"] if numbers}
    assert "There is no car park at the museum" in marked


def test_two_judges_that_ask_the_same_model_are_told_apart(record_of, page):
    record = record_of(1)
    both = [
        record.model_copy(
            update={
                "results": {
                    name: result.model_copy(update={"judge": judge, "model": "m-1"})
                    for name, result in record.results.items()
                }
            }
        )
        for judge in ("claude", "cascade")
    ]
    write_report(both, page)
    names = [(each["metric"], each["decider"]) for each in data_of(page)["series"]]
    assert len(set(names)) == len(names) == 2 * len(record.results)
    # Each judge's score is a mean of its own.
    means = [each["charts"]["all"]["mean"] for each in data_of(page)["series"]]
    assert {mean["n"] for mean in means if mean} == {1}
    content = page.read_text()
    assert "<small>claude, m-1</small>" in content
    assert "<small>cascade, m-1</small>" in content


def test_numbers_that_json_cannot_hold_are_left_out(record_of, metric_of, page):
    broken = metric_of("faithfulness", 0.5, duration=float("inf")).model_copy(
        update={"threshold": float("nan")}
    )
    record = record_of(
        0, created_at=float("inf"), lag=float("nan"), results={"faithfulness": broken}
    )
    assert write_report([record], page).answers == 1
    assert "NaN" not in json.dumps(data_of(page))


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"source": "missing.jsonl"}, (DatasetError, r"missing\.jsonl")),
        ({"source": []}, (DatasetError, r"holds no results$")),
        ({"since": datetime(2026, 1, 1)}, (ConfigurationError, "time zone")),  # noqa: DTZ001
        ({"worst": -1}, (ConfigurationError, "worst")),
        *(({"out": out}, (ConfigurationError, "name the file")) for out in ("", ".", "/")),
    ],
)
def test_what_cannot_be_reported_is_refused_and_leaves_no_page(
    museum, results_file, page, options, refused
):
    settings = {"source": list(museum(1)), "out": page, **options}
    source = settings.pop("source")
    with pytest.raises(refused[0], match=refused[1]):
        write_report(results_file([]) if source == [] else source, settings.pop("out"), **settings)
    assert not page.exists()


def test_a_page_that_cannot_be_written_leaves_nothing_behind(museum, tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(DatasetError, match="taken"):
        write_report(museum(1), tmp_path / "taken")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_batch_price_is_shown_as_one(museum, page):
    def in_a_batch(metric):
        halved = metric.usage.model_copy(update={"saved_usd": metric.usage.cost_usd})
        return metric.model_copy(update={"usage": halved})

    records = [
        record.model_copy(
            update={"results": {name: in_a_batch(r) for name, r in record.results.items()}}
        )
        for record in museum(10)
    ]
    write_report(records, page)
    assert "less than the list price" in page.read_text(encoding="utf-8")
    write_report(list(museum(10)), page)
    assert "less than the list price" not in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("fingerprints", "sentences"),
    [
        (["aaaa"], []),
        (["aaaaaa1", "bbbbbb2"], [("aaaaaa", "bbbbbb")]),
        (["aaaaaa1", "bbbbbb2", "cccccc3"], [("aaaaaa", "bbbbbb"), ("bbbbbb", "cccccc")]),
    ],
)
def test_a_change_of_what_makes_the_scores_is_named_with_both(
    museum, by_name, page, fingerprints, sentences
):
    share = 30 // len(fingerprints)
    write_report(
        [_made_by(each, fingerprints[n // share], by_name) for n, each in enumerate(museum(30))],
        page,
    )
    found = re.findall(
        r"<bdi>faithfulness</bdi> is scored by <bdi>.*?epoch (\w+)</bdi>, "
        r"before by <bdi>.*?epoch (\w+)</bdi>",
        page.read_text(),
    )
    assert [(before, after) for after, before in found] == sentences


def test_judges_that_score_side_by_side_are_no_change(museum, by_name, page):
    records = [_made_by(each, "ab"[n % 2] * 8, by_name) for n, each in enumerate(museum(30))]
    write_report(records, page)
    assert "do not compare" not in page.read_text()


def _made_by(record, fingerprint, by_name):
    results = [
        each.model_copy(update={"fingerprint": fingerprint}) for each in record.results.values()
    ]
    return record.model_copy(update={"results": by_name(*results)})


@pytest.mark.parametrize(("later", "word"), [(0.2, "worse"), (1.0, "better"), (0.7, None)])
def test_what_got_worse_or_better_is_on_the_first_screen(record_of, page, later, word):
    """Two weeks of forty scores each: the second is another, or like the first."""

    def scored(number):
        record = record_of(number)
        week, place = divmod(number, 40)
        scores = [0.6, 0.7, 0.8] if not week else [later - 0.05, later, min(1.0, later + 0.05)]
        result = record.results["faithfulness"].model_copy(
            update={"score": scores[place % 3], "status": Status.SCORED}
        )
        time = START + week * 7 * 86_400 + place * 60
        return record.model_copy(update={"results": {"faithfulness": result}, "created_at": time})

    write_report([scored(number) for number in range(80)], page)
    head = page.read_text().partition("</header>")[0]
    said = re.findall(r"<bdi>faithfulness</bdi> got (\w+)</b>: ([\d.]+) before", head)
    assert said == ([] if word is None else [(word, "0.70")])


def test_how_an_interval_was_made_is_a_tooltip_and_the_marks_have_a_legend(museum, page):
    write_report(museum(30), page)
    text = page.read_text()
    assert '<td class="n" title="Student&#39;s t of log odds">' in text
    assert '<th scope="col">Method</th>' not in text
    explorer = text.partition('id="answers"')[2]
    assert explorer.index("supported, <span") < explorer.index('id="list"')


def test_few_answers_have_no_interval_and_no_texts_say_how_to_get_them(museum, page):
    write_report(museum(4, text=False), page)
    text = page.read_text()
    assert "too few for an interval" in text
    assert "capture_content=True" in text
    assert "without <code>--no-text</code>" in text
