"""A calibration file: what it says, and what is refused when it is read."""

import json
from random import Random

import pytest

from ragaliq import Calibration, ConfigurationError, DatasetError, LocalJudge
from ragaliq.lab.calibration import fit_calibration


def labelled(n, *, seed=3, power=2.0):
    """Claims whose chance of support is the judge's support to a power."""
    random = Random(seed)
    support = [random.random() for _ in range(n)]
    return support, [random.random() < raw**power for raw in support]


@pytest.fixture(scope="module")
def calibration():
    return fit_calibration(LocalJudge(), *labelled(400))


def test_calibrated_probabilities_rise_are_never_certain_and_nearer_to_the_truth(calibration):
    found = [calibration.support(step / 20) for step in range(21)]
    assert found == sorted(found)
    assert 0.0 < found[0] < found[-1] < 1.0
    support, labels = labelled(4000, seed=8)
    squares = [(calibration.support(x) - y, x - y) for x, y in zip(support, labels, strict=True)]
    assert sum(c * c for c, _ in squares) < sum(r * r for _, r in squares)
    assert calibration.figures.brier < calibration.figures.brier_uncalibrated


def test_the_same_labels_give_the_same_id_on_any_day(calibration):
    again = fit_calibration(LocalJudge(), *labelled(400)).model_copy(
        update={"created": "2001-01-01"}
    )
    assert again.id == calibration.id
    assert fit_calibration(LocalJudge(), *labelled(401)).id != calibration.id


def test_a_file_that_was_changed_by_hand_is_refused(calibration, tmp_path):
    path = tmp_path / "cal.json"
    calibration.save(path)
    path.write_text(path.read_text().replace('"labels": 400', '"labels": 400, "x": 1'))
    with pytest.raises(ConfigurationError, match="not a calibration: x"):
        Calibration.load(path)
    calibration.save(path)
    saved = json.loads(path.read_text())
    saved["min_support"] = 0.1
    path.write_text(json.dumps(saved))
    with pytest.raises(ConfigurationError, match="changed after it was made"):
        Calibration.load(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not a JSON object"),
        ("[]", "not a JSON object"),
        ("{}", "not a calibration"),
        ('{"schema_version": 2}', "later ragaliq"),
    ],
)
def test_a_file_that_is_no_calibration_is_refused_with_the_reason(tmp_path, text, problem):
    path = tmp_path / "cal.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=problem):
        Calibration.load(path)
    with pytest.raises(ConfigurationError, match="No such file"):
        Calibration.load(tmp_path / "missing.json")


def test_a_threshold_reaches_its_precision_on_other_claims(calibration):
    support, labels = labelled(20_000, seed=9)
    pairs = [(calibration.support(x), y) for x, y in zip(support, labels, strict=True)]
    high = calibration.threshold_for(0.8)
    kept = [y for p, y in pairs if p >= high]
    assert kept
    assert sum(kept) / len(kept) >= 0.8
    low = calibration.threshold_for(0.9, metric="hallucination")
    flagged = [y for p, y in pairs if p < low]
    assert flagged
    assert 1 - sum(flagged) / len(flagged) >= 0.9
    assert low < high


def test_a_precision_that_the_labels_do_not_show_is_refused(calibration):
    with pytest.raises(ConfigurationError, match="the best they show is 0"):
        calibration.threshold_for(0.999)
    with pytest.raises(ConfigurationError, match="between 0 and 1"):
        calibration.threshold_for(1.0)
    with pytest.raises(ConfigurationError, match="no thresholds for 'relevance'"):
        calibration.threshold_for(0.8, metric="relevance")


def guessed():
    support, labels = labelled(300, seed=5)
    Random(1).shuffle(labels)
    return support, labels


def falling():
    """What is supported is mostly above the rest, and for some of it the judge is sure of no."""
    support = [0.6] * 60 + [0.0] * 20 + [0.55] * 80
    return [at + place * 1e-4 for place, at in enumerate(support)], [True] * 80 + [False] * 80


@pytest.mark.parametrize(
    ("support", "labels", "says"),
    [
        (*falling(), "falls where the labels rise"),
        (*labelled(99), "at least 100 are needed, 20 of each kind"),
        (labelled(200)[0], [i < 19 for i in range(200)], "19 of them supported; at least 100"),
        (labelled(200)[0], [True] * 200, "all are the same"),
        (*guessed(), r"does not tell supported claims from others.*0\.5"),
    ],
    ids=[
        "of a curve that falls",
        "too few",
        "too few of one kind",
        "of one kind",
        "by a judge that guesses",
    ],
)
def test_labels_that_give_no_calibration_are_refused_with_the_reason(support, labels, says):
    with pytest.raises(DatasetError, match=says):
        fit_calibration(LocalJudge(), support, labels)


def test_isotonic_is_taken_where_it_predicts_left_out_labels_better():
    random = Random(2)
    support = [random.random() for _ in range(1500)]
    labels = [random.random() < (0.05 if x < 0.4 else 0.55 if x < 0.8 else 0.6) for x in support]
    calibration = fit_calibration(LocalJudge(), support, labels)
    assert calibration.method == "isotonic"
    assert calibration.figures.tried["isotonic"] < calibration.figures.tried["platt"]
    assert fit_calibration(LocalJudge(), *labelled(120)).figures.tried.keys() == {"platt"}


def test_a_wanted_precision_moves_where_claims_begin_to_be_supported(calibration):
    wanted = fit_calibration(LocalJudge(), *labelled(400), precision=0.8)
    assert wanted.min_support == calibration.threshold_for(0.8) > 0.5
    assert wanted.precision == 0.8
    assert wanted.id != calibration.id


def test_an_operating_point_can_be_given_in_one_way():
    assert fit_calibration(LocalJudge(), *labelled(400), min_support=0.3).min_support == 0.3
    for wrong in ({"min_support": 1.5}, {"min_support": 0.3, "precision": 0.8}):
        with pytest.raises(ConfigurationError, match="min_support"):
            fit_calibration(LocalJudge(), *labelled(400), **wrong)
