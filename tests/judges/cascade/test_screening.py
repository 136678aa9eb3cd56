"""Which verdicts are accepted follows from the calibration alone."""

from __future__ import annotations

import pytest

from ragaliq import CascadeJudge, ClaimVerdict, ConfigurationError
from ragaliq.judges.calibration import fit_calibration
from ragaliq.testing import ScriptedJudge


def screening_of(calibration, **settings):
    screen = ScriptedJudge()
    screen.name, screen.fingerprint = calibration.judge, lambda: calibration.fingerprint
    better = ScriptedJudge()
    better.name = "better"
    return CascadeJudge(screen, better, calibration=calibration, **settings).screening


def verdict(support, min_support=0.5):
    if support >= min_support:
        return ClaimVerdict(verdict="SUPPORTED", confidence=support)
    return ClaimVerdict(verdict="NOT_ENOUGH_INFO", confidence=1.0 - support)


def share_of(screening, calibration, draws=20):
    """The share of the labelled claims that is escalated, counted verdict by verdict."""
    points = calibration.points
    after = [point.claims for point in points[1:]] + [0]
    escalated = 0.0
    for point, rest in zip(points, after, strict=True):
        tried = [
            screening.accepts(verdict(point.at, calibration.min_support), (i + 0.5) / draws)
            for i in range(draws)
        ]
        escalated += (point.claims - rest) * tried.count(False) / draws
    return escalated / calibration.labels


def test_claims_that_are_equally_certain_are_divided_by_their_draw():
    coarse = [0.1, 0.3, 0.7, 0.9]
    support = [coarse[i % 4] for i in range(400)]
    labels = [(i * 0.6180339887) % 1.0 < share for i, share in enumerate(support)]
    calibration = fit_calibration(ScriptedJudge(), support, labels)
    screening = screening_of(calibration, escalate=0.3)
    assert 0.0 < screening.share_at < 1.0
    assert share_of(screening, calibration, draws=100) == pytest.approx(0.3, abs=0.02)


def test_what_the_labels_promise_for_the_accepted_is_told(calibration):
    half, most = (screening_of(calibration, escalate=share) for share in (0.5, 0.8))
    accuracy, low, high = half.accuracy
    assert low < accuracy < high
    assert most.accuracy[0] > accuracy > 0.75
    assert screening_of(calibration, escalate=1.0).accuracy is None


def test_what_may_be_a_guess_is_not_accepted():
    # It knows which claims are wrong; of those it calls right, every other one is.
    support = [(i + 0.5) / 400 for i in range(400)]
    labels = [(i * 0.6180339887) % 1.0 < (0.1 if x < 0.3 else 0.5) for i, x in enumerate(support)]
    calibration = fit_calibration(ScriptedJudge(), support, labels)
    with pytest.raises(ConfigurationError, match=r"50% are right .* may be a guess"):
        screening_of(calibration, band=(0.0, 0.4))
    assert screening_of(calibration, band=(0.4, 1.0)).accuracy[0] > 0.85


def test_with_a_threshold_for_precision_doubtful_rejections_are_the_least_certain(calibration):
    strict = calibration.model_copy(update={"min_support": 0.8, "precision": 0.9})
    screening = screening_of(strict, escalate=0.3)
    # 0.75 is not called supported, although it mostly is.
    assert not screening.accepts(verdict(0.75, 0.8), 0.5)
    assert screening.accepts(verdict(0.95, 0.8), 0.5)
    assert screening.accepts(verdict(0.05, 0.8), 0.5)
