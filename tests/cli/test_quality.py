"""`ragaliq label` over a store, and `ragaliq quality`: from answers to the Monday number."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ragaliq import RAGTestCase, evaluate
from ragaliq.datasets import read_labelled_claims
from ragaliq.testing import ScriptedJudge

CHUNK = "The shop opens at 9. It has two doors."


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store of forty judged answers of two claims, every fourth of them wrong."""
    monkeypatch.chdir(tmp_path)

    def fill(captures=True):
        doors = ["seven" if n % 4 == 0 else "two" for n in range(40)]
        evaluate(
            [
                RAGTestCase(
                    id=f"shop-{n}",
                    query="When does it open?",
                    context=[CHUNK],
                    response=f"The shop opens at 9. It has {each} doors.",
                )
                for n, each in enumerate(doors)
            ],
            metrics=["faithfulness"],
            sinks=["sqlite:///live.db"],
            capture_content=captures,
            pipeline="shop",
            processes=0,
        )
        return "sqlite:///live.db"

    return fill


def test_from_a_store_to_the_monday_number(ragaliq, store, press, tmp_path):
    source = store()
    press("s" * 40)
    done = ragaliq("label", source, "--budget", 20)
    assert "20 of 20 drawn answers are labelled, of 40; in all 20, in " in done.stdout
    assert "SUPPORTED\n" in done.stdout
    assert "CONTRADICTED" not in done.stdout
    assert len(list(read_labelled_claims(tmp_path / "live.labels.jsonl"))) == 40
    assert (tmp_path / "live.labels.jsonl").stat().st_mode & 0o077 == 0
    done = ragaliq("quality", source, "--plan", "0.05", "--out", "q.json", "--plot", "q.svg")
    assert "shop, faithfulness" in done.stdout
    assert "Faithfulness as your reviewers would judge it: 1.00 [" in done.stdout
    said = "from 40 judged answers, 20 of them labelled (40 claims); the judge alone says 0.8"
    assert said in done.stdout
    assert "plan: +-0.05 takes " in done.stdout
    (series,) = json.loads((tmp_path / "q.json").read_text())
    assert series["weeks"][0]["labelled"] == 20
    assert (tmp_path / "q.svg").read_text().startswith("<svg")
    done = ragaliq("report", source, "-o", "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "As your reviewers would judge it" in page
    assert '<td class="n strong">1.00</td>' in page
    assert '<td class="n">20 (40)</td>' in page


def test_a_narrow_terminal_cuts_off_no_date_and_no_figure(ragaliq, store):
    shown = ragaliq("quality", store(), COLUMNS="55").stdout
    assert re.search(r"^\d{4}-\d\d-\d\d  .*  40 +0 *$", shown, re.MULTILINE)
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown


def test_labelling_goes_on_with_whole_answers_and_takes_labels_back(ragaliq, store, press):
    source = store()
    press("ucuns nq")
    done = ragaliq("label", source, "--budget", 3)
    assert "nothing to undo" in done.stdout
    assert "1 of 3 drawn answers are labelled" in done.stdout
    quality = ragaliq("quality", source)
    assert "1 drawn answers are not labelled whole" in quality.stderr
    press("ssss")
    done = ragaliq("label", source, "--budget", 2)
    assert "2 of 2 drawn answers are labelled, of 40; in all 3" in done.stdout


def test_another_judge_scores_the_same_answers_once(ragaliq, store, tmp_path):
    source = store()
    done = ragaliq("quality", source, "--rejudge", 10, "--judge", "local", "--policy", "ragas")
    assert "local scored 10 answers" in done.stderr
    rows = [json.loads(row) for row in (tmp_path / "live.anchors.jsonl").read_text().splitlines()]
    assert len(rows) == 20
    assert len({row["fingerprint"] for row in rows}) == 2
    assert "no labels: `ragaliq label sqlite:///live.db`" in done.stderr
    again = ragaliq("quality", source, "--rejudge", 10, "--judge", "local", "--policy", "ragas")
    assert "local scored 0 answers" in again.stderr


@pytest.mark.parametrize("model", [None, "sonnet 5"])
def test_after_a_change_of_the_judge_it_says_what_to_run(ragaliq, tmp_path, monkeypatch, model):
    monkeypatch.chdir(tmp_path)
    context = [CHUNK]
    case = RAGTestCase(query="Doors?", context=context, response="It has two doors.")

    def judged(name, number):
        judge = ScriptedJudge(claims=["It has two doors."])
        judge.name, judge.model = name, model
        cases = [case.model_copy(update={"id": f"{name} {n}"}) for n in range(number)]
        evaluate(
            cases,
            judge=judge,
            metrics=["faithfulness"],
            sinks=["sqlite:///live.db"],
            pipeline="my shop",
            processes=0,
        )

    judged("local", 3)
    judged("claude", 3)
    done = ragaliq("quality", "live.db")
    named = " --model 'sonnet 5'" if model else ""
    command = f"ragaliq quality live.db --rejudge 60 --judge claude{named} --pipeline 'my shop'"
    assert "both judges scored 0 answers: too few to say which moved" in done.stdout
    assert f"  {command}\n" in done.stdout


def test_figures_are_sent_where_the_environment_says_so(ragaliq, store, press, monkeypatch):
    sent = {}
    monkeypatch.setattr("ragaliq.cli.console.configure_from_environment", lambda name: True)
    monkeypatch.setattr(
        "ragaliq.telemetry.metrics.MetricsRecorder.record",
        lambda self, name, value, of: sent.update({name: value}),
    )
    source = store()
    press("s" * 40)
    ragaliq("label", source, "--budget", 20)
    ragaliq("quality", source)
    assert sent.pop("ragaliq.quality.low") < sent.pop("ragaliq.quality.mean") == 1.0
    assert sent == {
        "ragaliq.quality.high": 1.0,
        "ragaliq.quality.labels": 40.0,
        "ragaliq.quality.changed": 0.0,
    }


def test_a_fall_is_on_the_first_screen_of_the_report(ragaliq, tmp_path):
    month = Path(__file__).parents[2] / "examples/quality/month.py"
    subprocess.run([sys.executable, month, tmp_path / "month.db"], check=True, cwd=tmp_path)
    ragaliq("report", "month.db", "-o", "page.html")
    header = (tmp_path / "page.html").read_text().partition("</header>")[0]
    assert "faithfulness</bdi> of <bdi>help-desk</bdi> fell</b> by 0.12 in release" in header
