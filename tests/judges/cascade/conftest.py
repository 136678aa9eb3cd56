"""A screen whose support is written in the claim, and a calibration that was made for it."""

import sys
from pathlib import Path

import pytest

from ragaliq import ClaimVerdict
from ragaliq.lab.calibration import fit_calibration
from ragaliq.testing import ScriptedJudge

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)  # for curves.py, which is also a command


class Screen(ScriptedJudge):
    """Its raw support of "claim 0.83" is 0.83."""

    name = "screen"

    def __init__(self, **settings):
        super().__init__(verdicts=lambda claim, context: says(claim), **settings)


def says(claim):
    support = float(claim.split()[-1])
    if support >= 0.5:
        return ClaimVerdict(verdict="SUPPORTED", confidence=support)
    return ClaimVerdict(verdict="NOT_ENOUGH_INFO", confidence=1.0 - support)


@pytest.fixture(scope="session")
def calibration():
    """400 labels; support is the chance of being supported, as far as labels can have it."""
    support = [(i + 0.5) / 400 for i in range(400)]
    labels = [(i * 0.6180339887) % 1.0 < share for i, share in enumerate(support)]
    return fit_calibration(Screen(), support, labels)


@pytest.fixture
def better():
    """The judge that is asked next; it calls everything contradicted."""
    judge = ScriptedJudge(verdicts="CONTRADICTED")
    judge.name = "better"
    return judge


@pytest.fixture
def claims():
    return [f"claim {i / 200:.4f}" for i in range(1, 200)]


@pytest.fixture
def asked():
    """The claims of each verification call of a judge."""
    return lambda judge: [
        list(call.arguments["claims"]) for call in judge.calls if call.method == "verify_claims"
    ]


@pytest.fixture
def screen():
    return Screen()


@pytest.fixture
def scripted_screen():
    """A screen that finds three claims in any answer: unsupported, doubtful, supported."""
    return Screen(claims=["claim 0.02", "claim 0.5", "claim 0.98"])
