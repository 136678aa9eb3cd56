"""`ragaliq label`, as a person at a terminal uses it."""

import contextlib
import json
import os
import pty
import subprocess
import sys

import pytest

from ragaliq.datasets import read_labelled_claims

CASE = {
    "query": "When does it open?",
    "context": ["The shop opens at 9.", "It has [red]two[/red] doors.\x1b[2J"],
    "response": "The shop opens at 9. It has seven doors. Parrots juggle lanterns.",
}


@pytest.fixture
def results(ragaliq, write_cases):
    cases = write_cases(CASE)
    metrics = ("--metrics", "faithfulness,hallucination")
    ragaliq("evaluate", cases, *metrics, "--out", "results.jsonl")
    return "results.jsonl"


def test_each_claim_is_asked_about_once_and_its_label_kept(ragaliq, results, press, tmp_path):
    press("scn")
    done = ragaliq("label", results, "-o", "labels.jsonl")
    assert "3 of 3 claims are labelled" in done.stdout
    claims = list(read_labelled_claims(tmp_path / "labels.jsonl"))
    assert [claim.verdict for claim in claims] == ["SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO"]
    assert {claim.claim for claim in claims} == {
        "The shop opens at 9.",
        "It has seven doors.",
        "Parrots juggle lanterns.",
    }
    assert claims[0].context == tuple(CASE["context"])
    assert claims[0].question == CASE["query"]


def test_the_judges_verdict_is_not_shown_and_hostile_text_stays_text(ragaliq, results, press):
    press("q")
    done = ragaliq("label", results, "-o", "labels.jsonl")
    assert "The shop opens at 9." in done.stdout
    assert "[red]two[/red]" in done.stdout
    assert "\x1b" not in done.stdout
    assert "SUPPORTED" not in done.stdout
    assert "NOT_ENOUGH_INFO" not in done.stdout


def test_labelling_goes_on_where_it_stopped_and_other_keys_do_nothing(
    ragaliq, results, press, tmp_path
):
    press(["x", "\x1b[A", "s", "q"])
    done = ragaliq("label", results, "-o", "labels.jsonl")
    assert "1 of 3" in done.stdout
    assert done.stdout.count("no such key; [s]upported") == 2
    assert "no context" not in done.stdout
    first = (tmp_path / "labels.jsonl").read_text()
    press(" c")
    assert "2 of 3" in ragaliq("label", results, "-o", "labels.jsonl").stdout
    assert (tmp_path / "labels.jsonl").read_text().startswith(first)
    press("n")
    assert "3 of 3" in ragaliq("label", results, "-o", "labels.jsonl").stdout


@pytest.mark.parametrize(
    "end", [b"", b'\n{"id": "row 1/c3d4", "cla'], ids=["no newline", "cut line"]
)
def test_labels_go_on_after_an_editor_or_a_sudden_end(ragaliq, results, press, tmp_path, end):
    press("sq")
    ragaliq("label", results, "-o", "labels.jsonl")
    labels = tmp_path / "labels.jsonl"
    labels.write_bytes(labels.read_bytes().removesuffix(b"\n") + end)
    press("cn")
    done = ragaliq("label", results, "-o", "labels.jsonl")
    assert "3 of 3 claims are labelled" in done.stdout, done.stderr
    kept = [claim.verdict for claim in read_labelled_claims(labels)]
    assert kept == ["SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO"]


def test_without_a_terminal_it_says_so_and_makes_no_file(ragaliq, results, monkeypatch, tmp_path):
    def getchar():
        raise OSError

    monkeypatch.setattr("typer.getchar", getchar)
    done = ragaliq("label", results, "-o", "labels.jsonl", code=2)
    assert "labelling needs a terminal" in done.stderr
    assert not (tmp_path / "labels.jsonl").exists()


def test_a_claim_without_context_says_so(ragaliq, write_cases, press):
    ragaliq(
        *("evaluate", write_cases(CASE | {"context": []})),
        *("--policy", "ragaliq", "--out", "bare.jsonl"),
    )
    press("q")
    assert "no context" in ragaliq("label", "bare.jsonl", "-o", "labels.jsonl").stdout


def test_two_people_are_compared_by_kappa(ragaliq, results, press, tmp_path):
    for name, keys in (("a.jsonl", "scn"), ("b.jsonl", "snn")):
        press(keys)
        ragaliq("label", results, "-o", name)
    done = ragaliq("label", "--compare", "a.jsonl", "b.jsonl")
    assert "3 claims in common, the same label on 2 (67%), over 3 classes" in done.stdout
    assert "kappa 0.500 [" in done.stdout
    second = json.loads((tmp_path / "a.jsonl").read_text().splitlines()[1])
    assert f"apart: {second['id']}" in done.stdout


def test_keys_come_from_a_real_terminal_without_enter(results, tmp_path):
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ragaliq.cli", "label", results, "-o", "labels.jsonl"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        stdin=slave,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        # What is typed before a claim is on the screen is thrown away: type until all is done.
        while process.poll() is None:
            os.write(master, b"s")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
        assert "3 of 3 claims are labelled" in process.stdout.read()
    os.close(master)
    os.close(slave)
    assert process.returncode == 0
