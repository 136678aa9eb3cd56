"""Runs of Phoenix, MLflow and Langfuse as cases, on loopback servers of their interfaces."""

import json
import os
import stat
import sys
import time
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)

from products import LangfuseProduct, MlflowProduct, PhoenixProduct, Run  # noqa: E402

from products_receivers import Fault  # noqa: E402
from ragaliq.datasets import read_cases, read_labelled_claims  # noqa: E402
from ragaliq.errors import ConfigurationError, DatasetError  # noqa: E402
from ragaliq.lab.labels import read_labels  # noqa: E402
from ragaliq.lab.quality import quality_of  # noqa: E402
from ragaliq.records.store import read_scores  # noqa: E402

CHUNKS = ["The shop opens at 9.", "It has two doors."]
RUNS = (
    Run(1, "When does it open?", "The shop opens at 9.", CHUNKS),
    Run(2, "How many doors?", "It has two doors. They are made of gold.", CHUNKS),
    Run(3, "Is it big?", "It has two doors.", CHUNKS),
)
PRODUCTS = {"phoenix": PhoenixProduct, "mlflow": MlflowProduct, "langfuse": LangfuseProduct}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ragaliq.traces.backends.pause_before_retry", lambda *_, **__: 0.0)
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk")
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-secret")


@pytest.fixture(params=PRODUCTS)
def product(request):
    server = PRODUCTS[request.param](*RUNS)
    place = server.url.removeprefix("http://")
    project = "" if request.param == "langfuse" else "/my%20shop"
    server.address = f"{request.param}://{place}{project}"
    yield server
    server.stop()


@pytest.fixture
def phoenix():
    server = PhoenixProduct(*RUNS)
    server.address = f"phoenix://{server.url.removeprefix('http://')}/my%20shop"
    yield server
    server.stop()


def test_each_run_is_a_case_with_what_its_model_was_shown(product):
    cases = {case.query: case for case in read_cases(product.address)}
    assert cases.keys() == {run.question for run in RUNS}
    for run in RUNS:
        assert cases[run.question].response == run.answer
        assert cases[run.question].context_texts == CHUNKS
        assert cases[run.question].id == f"{run.trace_id}-{run.span_id}"


def test_scores_go_back_and_a_second_run_finds_nothing_left(product, ragaliq):
    out, err = ragaliq("evaluate", product.address, "--metrics", "faithfulness")
    assert "3 judged" in out
    assert f"sink {product.address.partition(':')[0]}: 3 written" in err
    assert len(product.said) == 3
    asked = len(product.requests)
    out, err = ragaliq("evaluate", product.address, "--metrics", "faithfulness")
    assert "no run without a score; 3 have one" in out
    assert len(product.said) == 3
    assert "POST" not in {
        method for method, path, *_ in product.requests[asked:] if "search" not in path
    }


def test_a_metric_that_is_new_is_scored_for_all_runs(product, ragaliq):
    for metrics, scores in (("faithfulness", 3), ("faithfulness,relevance", 6)):
        ragaliq("evaluate", product.address, "--metrics", metrics)
        assert {(each.get("name") or each["assessment_name"]) for each in product.said} == set(
            metrics.split(",")
        )
        assert len(product.said) >= scores


def test_what_the_judge_failed_on_counts_as_unscored(phoenix):
    phoenix.said = [
        {
            "span_id": run.span_id,
            "name": "faithfulness",
            "identifier": "x",
            "annotator_kind": "CODE",
            "result": {"label": status},
            "metadata": {"ragaliq.status": status},
        }
        for run, status in zip(RUNS, ("judge_timeout", "no_claims", "scored"), strict=True)
    ]
    assert [case.query for case in read_cases(phoenix.address)] == ["When does it open?"]


def test_what_people_said_becomes_labels(product, ragaliq):
    product.annotate(RUNS[0], "faithfulness", 1.0)
    product.annotate(RUNS[1], "faithfulness", "fail")
    product.annotate(RUNS[2], "tone", "fail")
    ragaliq("evaluate", product.address, "--metrics", "faithfulness")  # its scores are no labels
    out, err = ragaliq("label", product.address, "-o", "labels.jsonl")
    assert "2 answers labelled by people, 1 of them as supported" in out
    labels = {label.question: label for label in read_labelled_claims("labels.jsonl")}
    assert {question: label.is_supported for question, label in labels.items()} == {
        "When does it open?": True,
        "How many doors?": False,
    }
    assert labels["How many doors?"].claim == RUNS[1].answer
    assert labels["How many doors?"].context == tuple(CHUNKS)
    rows = [json.loads(line) for line in Path("labels.jsonl").read_text().splitlines()]
    assert {tuple(row["authors"]) for row in rows} == {("ana",)}
    _, err = ragaliq("label", product.address, "-o", "other.jsonl", "--annotation", "mood", code=3)
    assert "people annotated faithfulness (2), tone (1); name one by --annotation" in err


def test_annotations_picked_at_random_make_quality_as_people_would_judge_it(ragaliq):
    answers = ["The shop opens at 9.", "The shop opens at 9. It sells gold watches."]
    runs = [Run(n, f"Question {n}?", answers[n % 2], CHUNKS) for n in range(1, 31)]
    phoenix = PhoenixProduct(*runs)
    address = f"phoenix://{phoenix.url.removeprefix('http://')}/my%20shop"
    sink = ("--sink", "sqlite:///live.db")
    _, err = ragaliq("evaluate", address, "--metrics", "faithfulness", *sink)
    for run in runs[:12]:
        phoenix.annotate(run, "faithfulness", 0.0 if run.answer == answers[1] else 1.0)
    ragaliq("label", address, "-o", "plain.jsonl")
    assert "do not count" in ragaliq("quality", "live.db", "--labels", "plain.jsonl").stderr
    _, err = ragaliq("label", address, "-o", "live.labels.jsonl", "--at-random")
    phoenix.stop()
    out, err = ragaliq("quality", "live.db")
    assert "from 30 judged answers, 12 of them labelled" in out
    labels = read_labels("live.labels.jsonl")
    assert {labels.chance(each) for each in labels.answers.values()} == {12 / 30}
    _, err = ragaliq("label", "sqlite:///live.db", code=2)
    assert "live.labels.jsonl holds annotations of a product" in err
    # Scored while it ran, a run has an id of its own; its trace is the same.
    scores = list(read_scores("live.db"))
    [series] = quality_of(scores, labels)
    [live] = quality_of([each._replace(run_id=f"live {each.run_id}") for each in scores], labels)
    assert live.total == series.total
    assert series.total.anchored.estimate.value == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ([0.9], "1 answer "),
        ([True], "1 answer "),
        (["thumbs_up"], "1 answer "),
        ([1.0, 0.0], "no run has a clear annotation"),
        ([1.0, 1.0, 0.0], "1 answer "),
        ([4.0], "no run has a clear annotation"),
        (["meh"], "no run has a clear annotation"),
    ],
)
def test_only_clear_words_and_scores_are_labels(phoenix, ragaliq, values, outcome):
    for value in values:
        phoenix.annotate(RUNS[0], "faithfulness", value)
    code = 3 if outcome.startswith("no run") else 0
    out, err = ragaliq("label", phoenix.address, "-o", "labels.jsonl", code=code)
    assert outcome in out + err


@pytest.mark.parametrize(
    ("query", "questions"),
    [
        ("limit=1", ["Is it big?"]),
        ("since=2026-05-28T20:26:42", ["How many doors?", "Is it big?"]),
        ("until=2026-05-28T20:26:42", ["When does it open?"]),
        ("since=2030-01-01", []),
    ],
)
def test_the_address_says_which_runs(product, query, questions):
    found = [case.query for case in read_cases(f"{product.address}?{query}")]
    assert sorted(found) == sorted(questions)


@pytest.mark.parametrize(
    ("address", "error", "problem"),
    [
        ("phoenix://", ConfigurationError, "write it as phoenix://PROJECT"),
        ("phoenix://localhost:6006", ConfigurationError, "write it as phoenix://PROJECT"),
        ("langfuse://host/project", ConfigurationError, "write it as phoenix://PROJECT"),
        ("mlflow+https:///name", ConfigurationError, "write it as phoenix://PROJECT"),
        ("phoenix://shop?sinc=1", ConfigurationError, "knows since, until, limit, not 'sinc'"),
        ("phoenix://shop?since=monday", ConfigurationError, "since is not a date"),
        ("phoenix://shop?limit=0", ConfigurationError, "limit must be a whole number"),
        ("phoenix://127.0.0.1:1/shop", DatasetError, "cannot be reached"),
    ],
)
def test_a_wrong_address_is_refused_with_the_way_out(address, error, problem):
    with pytest.raises(error, match=problem.replace("?", "[?]")):
        read_cases(address)


@pytest.mark.parametrize(
    "address",
    [
        "phoenix://shop?api_key=zebra",
        "phoenix+https://me:zebra@host/shop?since=monday",
        "langfuse+https://pk:zebra@host/project",
        "phoenix+https://me:zebra@host/shop",
    ],
)
def test_a_key_in_an_address_is_not_repeated(address):
    with pytest.raises(ConfigurationError) as raised:
        read_cases(address)
    assert "zebra" not in str(raised.value)


def test_a_product_that_names_the_same_page_for_ever_is_left(product):
    product.cut = lambda found, cursor: (found[:1], "1")
    with pytest.raises(DatasetError, match="gives the same page for ever"):
        read_cases(product.address)


def test_an_address_stands_alone(tmp_path):
    (tmp_path / "a.csv").write_text("query,response\nA?,B\n")
    with pytest.raises(ConfigurationError, match="name it alone"):
        read_cases(tmp_path / "a.csv", "phoenix://shop")


@pytest.mark.parametrize("project", ["my%20shop", "other"])
def test_an_unknown_project_and_a_refused_key_are_told_apart(phoenix, project):
    address = phoenix.address.replace("my%20shop", project)
    if project == "my%20shop":
        phoenix.faults = [Fault(401)]
    problem = "refused the key" if project == "my%20shop" else "Phoenix knows no such project"
    with pytest.raises(DatasetError, match=problem) as raised:
        read_cases(address)
    assert "zebra" not in str(raised.value)
    assert len(phoenix.requests) == 1


def test_a_passing_failure_is_asked_again(product):
    product.faults = [Fault(503), Fault(429, {"retry-after": "0"})]
    assert len(list(read_cases(product.address))) == 3


def test_a_run_whose_first_span_has_not_arrived_is_left_for_later():
    now = time.time() - 20
    late = Run(
        9, "Who is it?", "The shop opens at 9.", CHUNKS, began=now, parent="00000000000000aa"
    )
    old = Run(8, "Why?", "The shop opens at 9.", CHUNKS, parent="00000000000000aa")
    server = PhoenixProduct(late, old)
    try:
        reader = read_cases(f"phoenix://{server.url.removeprefix('http://')}/my%20shop")
        assert [case.query for case in reader] == ["Why?"]
    finally:
        server.stop()


def test_what_was_read_lies_in_a_private_folder_and_goes_with_the_reader(phoenix):
    reader = read_cases(phoenix.address)
    folder = reader.path.parent
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700  # noqa: PTH116 - the mode alone
    assert len(list(reader)) == len(list(reader)) == 3
    del reader
    assert not folder.exists()
