"""A real Phoenix: spans by OTLP, verdicts by the sink, read back by REST and seen on its page."""

import asyncio
import shutil
from urllib.error import HTTPError

import pytest
from application import (
    ANSWERS,
    PIPELINE,
    answer_all,
    answer_unwatched,
    eventually,
    failed,
    fetch,
    ragaliq,
    tracing,
    try_it,
)
from browser import content, picture
from servers import ROOT, installed, serving

from free_ports import free_port
from ragaliq import PhoenixSink
from ragaliq.datasets import read_labelled_claims

pytestmark = pytest.mark.backends
PICTURE = ROOT / "docs/pages/images/phoenix.png"
PROJECT = "shop"


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("phoenix")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environment = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    command = [installed("phoenix", "bin", "phoenix"), "serve"]
    with serving(command, f"{url}/healthz", folder, environment):
        yield url


@pytest.fixture(scope="module")
def records(phoenix):
    """What the sinks were given for a chain whose spans and verdicts Phoenix now has."""
    with tracing(phoenix, {"openinference.project.name": PROJECT}) as provider:
        return answer_all(provider, PhoenixSink(phoenix))


def found_in_project(address):
    try:
        return fetch(address)["data"]
    except HTTPError as error:
        # A project begins with its first span, which Phoenix stores in its own time.
        if error.code != 404:
            raise
        return []


def spans(phoenix, project=PROJECT):
    return found_in_project(f"{phoenix}/v1/projects/{project}/spans?limit=1000")


def annotations(phoenix, records):
    chosen = "&".join(f"span_ids={record.run.target.span_id}" for record in records)
    return found_in_project(f"{phoenix}/v1/projects/{PROJECT}/span_annotations?{chosen}&limit=1000")


def all_annotations(phoenix, records):
    number = sum(len(record.results) for record in records)
    return eventually(lambda: annotations(phoenix, records), lambda found: len(found) >= number)


def send(phoenix, *records, times=1):
    async def all_of_them():
        sink = PhoenixSink(phoenix)
        for _ in range(times):
            await sink.write(records)
        await sink.aclose()

    asyncio.run(all_of_them())


def test_each_verdict_hangs_on_the_span_of_the_chain_it_is_about(phoenix, records):
    def all_answered(found):
        return sum(span["name"] == PIPELINE for span in found) == len(ANSWERS)

    roots = {
        span["context"]["span_id"]: span
        for span in eventually(lambda: spans(phoenix), all_answered)
        if span["name"] == PIPELINE
    }
    assert {span["attributes"]["input.value"] for span in roots.values()} == set(ANSWERS)
    found = all_annotations(phoenix, records)
    assert {annotation["span_id"] for annotation in found} == set(roots)
    for record in records:
        span = roots[record.run.target.span_id]
        assert span["span_kind"] == "CHAIN"
        assert span["parent_id"] is None
        assert span["attributes"]["input.value"] == record.case.query


def test_an_annotation_has_score_label_reason_and_a_computed_identifier(phoenix, records):
    found = {a["identifier"]: a for a in all_annotations(phoenix, records)}
    metrics = {
        record.metric_id(name): result
        for record in records
        for name, result in record.results.items()
    }
    assert found.keys() == metrics.keys()
    for identifier, metric in metrics.items():
        annotation = found[identifier]
        assert annotation["name"] == metric.evaluator_name
        assert annotation["annotator_kind"] == "CODE"
        assert annotation["metadata"]["ragaliq.status"] == "scored"
        assert annotation["result"] == {
            "score": pytest.approx(metric.score),
            "label": "pass" if metric.passed else "fail",
            "explanation": metric.reasoning,
        }
    scores = sorted(m.score for m in metrics.values() if m.evaluator_name == "faithfulness")
    assert scores == [pytest.approx(2 / 3), 1.0]


def test_what_is_sent_again_replaces_and_never_doubles(phoenix, records):
    before = {a["id"]: a for a in all_annotations(phoenix, records)}

    send(phoenix, *records, times=2)

    def rewritten(found):
        return all(a["updated_at"] > before[a["id"]]["updated_at"] for a in found)

    # Phoenix stores them in its own time: each has been written anew once its time has moved.
    after = eventually(lambda: annotations(phoenix, records), rewritten)
    assert {a["id"] for a in after} == before.keys()
    assert len(after) == len(before)


def test_the_evaluation_itself_is_a_trace_of_evaluators_that_names_its_target(phoenix, records):
    def whole(found):
        return sum(span["name"].startswith("claim ") for span in found) == 4

    found = eventually(lambda: spans(phoenix, f"{PROJECT}-evaluations"), whole)
    own = [span for span in found if span["name"] == f"evaluation {PIPELINE}"]
    assert {span["attributes"]["ragaliq.target.span_id"] for span in own} == {
        record.run.target.span_id for record in records
    }
    assert {span["span_kind"] for span in found} == {"EVALUATOR"}
    assert "claim not_enough_info" in {span["name"] for span in found}
    requests = {span["name"] for span in spans(phoenix)}
    assert not any(name.startswith(("evaluation", "claim")) for name in requests)


def test_the_page_shows_the_verdict(phoenix, records, tmp_path):
    all_annotations(phoenix, records)
    (record,) = [record for record in records if not next(iter(record.results.values())).passed]
    project = fetch(f"{phoenix}/v1/projects/{PROJECT}")["data"]["id"]
    url = f"{phoenix}/projects/{project}/traces/{record.run.target.trace_id}"
    shown = content(url, tmp_path / "profile")
    assert record.case.response.split(". ")[-1] in shown
    assert "faithfulness" in shown
    assert "0.66" in shown
    image = tmp_path / "phoenix.png"
    picture(url, image, tmp_path / "profile")
    # The test cannot see whether it is a good picture: look at it when it has changed.
    assert 20_000 < image.stat().st_size < 250_000
    PICTURE.parent.mkdir(exist_ok=True)
    shutil.move(image, PICTURE)


def test_a_failed_evaluation_has_its_status_as_label_and_no_score(phoenix, records):
    record = failed(records[0])
    send(phoenix, record, times=2)

    def timed_out():
        return [a for a in annotations(phoenix, [record]) if a["name"] == "timed_out"]

    (annotation,) = eventually(timed_out, bool)
    assert annotation["identifier"] == f"{record.metric_id('timed_out')}-status"
    assert annotation["result"]["label"] == "judge_timeout"
    assert annotation["result"].get("score") is None


def test_the_example_ends_with_verdicts_in_phoenix(phoenix):
    said = try_it("phoenix", {"PHOENIX_BASE_URL": phoenix})
    assert "phoenix: 2 written, 0 failed" in said


def test_runs_that_are_there_are_scored_once_and_peoples_annotations_read_as_labels(
    phoenix, tmp_path
):
    with tracing(phoenix, {"openinference.project.name": "archive"}) as provider:
        answer_unwatched(provider)
    environment = {"PHOENIX_BASE_URL": phoenix}
    place = f"{phoenix}/v1/projects/archive"

    def roots():
        try:
            return fetch(f"{place}/spans?limit=100&parent_id=null")["data"]
        except HTTPError:
            return []

    spans = eventually(roots, lambda found: len(found) == len(ANSWERS))
    said = ragaliq("evaluate", "phoenix://archive", environment=environment)
    assert "sink phoenix: 2 written" in said
    ids = "&".join(f"span_ids={span['context']['span_id']}" for span in spans)

    def scores():
        return fetch(f"{place}/span_annotations?{ids}&limit=100")["data"]

    found = eventually(scores, lambda found: len(found) >= len(ANSWERS))
    assert sorted(a["result"]["score"] for a in found if a["name"] == "faithfulness") == [
        pytest.approx(2 / 3),
        1.0,
    ]
    said = ragaliq("evaluate", "phoenix://archive", environment=environment)
    assert "no run without a score; 2 have one" in said

    opinions = [
        {
            "span_id": span["context"]["span_id"],
            "name": "faithfulness",
            "annotator_kind": "HUMAN",
            "result": {"label": "pass" if "open" in span["attributes"]["input.value"] else "fail"},
        }
        for span in spans
    ]
    fetch(f"{phoenix}/v1/span_annotations?sync=true", {"data": opinions})
    labels = tmp_path / "labels.jsonl"
    ragaliq("label", "phoenix://archive", "-o", str(labels), environment=environment)
    assert {label.claim: label.is_supported for label in read_labelled_claims(labels)} == {
        answer: "open" in question for question, answer in ANSWERS.items()
    }
