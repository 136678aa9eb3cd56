"""`ragaliq judge bench`, `ragaliq judge compare` and `ragaliq calibrate`."""

import json

import pytest

from ragaliq import Calibration
from ragaliq.lab.bench import JudgeBench


@pytest.fixture
def write_claims(tmp_path):
    """Writes labelled claims that the embedded judge can mostly tell apart; half are supported."""

    def write(n=120, *, name="claims.jsonl", groups=("",), wrong=(3,)):
        rows = []
        for number in range(n):
            is_supported = number % 2 == 0
            about = f"holds {number + 3} maps" if is_supported else "sells tickets for parrots"
            rows.append(
                {
                    "id": f"c{number:04}",
                    "claim": f"Room {number} {about}.",
                    "context": [f"Room {number} holds {number + 3} maps and a very old globe."],
                    # One label in ten is wrong, as people's are.
                    "label": int(is_supported != (number % 10 in wrong)),
                    "group": groups[number % len(groups)],
                }
            )
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


def test_a_bench_fits_the_terminal_and_is_written_and_compared(ragaliq, write_claims, tmp_path):
    # A kappa around 0 needs the most room, for the minus.
    groups = ("visitors-of-the-aquarium", "b", "c")
    claims = write_claims(groups=groups, wrong=(0, 1, 4, 5, 8))
    done = ragaliq("judge", "bench", claims, "--out", "a.json", COLUMNS="80")
    assert "local, uncalibrated: claims.jsonl" in done.stdout
    assert "confidence is uncalibrated" in done.stdout
    head, *rows = done.stdout[: done.stdout.index("macro F1 and")].splitlines()[1:]
    assert head.startswith("group ")
    assert head.rstrip().endswith("ECE")
    assert any(" -0." in row for row in rows)
    assert max(map(len, rows)) <= 80
    bench = JudgeBench.load(tmp_path / "a.json")
    assert set(bench.groups) == set(groups)
    assert f"{bench.overall.auroc.value:.3f}" in done.stdout
    assert bench.overall.scored == 120
    held = (tmp_path / "a.json").read_bytes()
    assert b"maps" not in held

    (tmp_path / "b.json").write_bytes(held)
    done = ragaliq("judge", "compare", "a.json", "b.json", COLUMNS="200")
    assert "on 120 claims that both decided" in done.stdout
    assert "first:  local, uncalibrated (a.json)" in done.stdout
    assert "second: local, uncalibrated (b.json)" in done.stdout


def test_calibrate_continues_a_journal_and_its_file_is_used_by_bench_and_evaluate(
    ragaliq, write_claims, tmp_path
):
    claims, journal = write_claims(), tmp_path / "j.jsonl"
    options = ("--journal", "j.jsonl", "-o", "cal.json")
    done = ragaliq("calibrate", claims, "--judge", "local", *options)
    calibration = Calibration.load(tmp_path / "cal.json")
    assert calibration.id in done.stdout
    assert "80% precise for faithfulness: called supported from" in done.stdout
    unreached = [line for line in done.stdout.splitlines() if "do not show" in line]
    said = ": no threshold; these labels do not show that precision"
    assert unreached
    assert all(line.endswith(said) for line in unreached)

    lines = journal.read_text().splitlines(keepends=True)
    assert len(lines) == 121
    journal.write_text("".join(lines[:51]))
    ragaliq("calibrate", claims, *options)
    again = journal.read_text().splitlines(keepends=True)
    assert (again[:51], len(again)) == (lines[:51], 121)

    done = ragaliq("judge", "bench", claims, "--calibration", "cal.json", "--out", "b.json")
    assert "is uncalibrated" not in done.stdout
    assert JudgeBench.load(tmp_path / "b.json").calibration == calibration.id

    case = {"id": "1", "query": "q", "context": ["It opens at 9."], "response": "It opens at 9."}
    (tmp_path / "cases.jsonl").write_text(json.dumps(case) + "\n")
    done = ragaliq("evaluate", "cases.jsonl", "--calibration", "cal.json", "--out", "results.jsonl")
    metrics = json.loads((tmp_path / "results.jsonl").read_text().splitlines()[1])["results"]
    found = {name: result["calibration"] for name, result in metrics.items()}
    assert found == {"faithfulness": calibration.id}


def test_unlabelled_answers_results_and_stores_give_the_same_level(ragaliq, tmp_path):
    context = "Refunds take five days. The lamp weighs 310 grams. Parcels cost twelve euros."
    row = {"query": "q", "context": [context], "response": context}
    (tmp_path / "a.jsonl").write_text(f"{json.dumps(row)}\n" * 100)
    written = ("--out", "r.jsonl", "--no-text", "--sink", f"sqlite:///{tmp_path}/s.db")
    ragaliq("evaluate", "a.jsonl", *written)
    found = set()
    for source in ("a.jsonl", "r.jsonl", "s.db", f"sqlite:///{tmp_path}/s.db"):
        done = ragaliq("calibrate", "--unlabelled", source, "-o", "level.json")
        assert "300 claims without labels: a claim counts as supported from" in done.stdout
        found.add(Calibration.load(tmp_path / "level.json").id)
    (level,) = found

    # With the level in force, results tell the same.
    done = ragaliq("evaluate", "a.jsonl", "--calibration", "level.json", "--out", "r2.jsonl")
    assert f"judge local, {level}" in done.stdout
    ragaliq("calibrate", "--unlabelled", "r2.jsonl", "-o", "level.json")
    assert Calibration.load(tmp_path / "level.json").id == level

    for options, says in (
        (("--unlabelled", "s.db", "--precision", "0.9"), "need labels"),
        (("a.jsonl", "--unlabelled", "a.jsonl"), "give a file of labelled claims, or --unlabelled"),
        ((), "give a file of labelled claims, or --unlabelled"),
        (("a.jsonl", "--pipeline", "x"), "--pipeline goes with --unlabelled"),
    ):
        done = ragaliq("calibrate", *options, "-o", "other.json", code=2)
        assert says in done.stderr
    options = ("--unlabelled", "s.db", "--pipeline", "another", "-o", "other.json")
    assert "there are 0 claims of judge 'local'" in ragaliq("calibrate", *options, code=3).stderr
    assert not (tmp_path / "other.json").exists()


def test_a_wanted_precision_is_kept_or_refused(ragaliq, write_claims, tmp_path):
    claims = write_claims(200)
    done = ragaliq("calibrate", claims, "-o", "cal.json", "--precision", "0.8")
    assert Calibration.load(tmp_path / "cal.json").precision == 0.8
    done = ragaliq("calibrate", claims, "-o", "other.json", "--precision", "0.999", code=2)
    assert "do not show a precision of 0.999" in done.stderr
