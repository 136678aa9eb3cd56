"""A cheap judge decides what it is sure of, a better one the rest, and each claim says who did."""

from ragaliq.judges.cascade.agreement import StageAgreement
from ragaliq.judges.cascade.judge import CascadeJudge
from ragaliq.judges.cascade.screening import Screening

__all__ = ["CascadeJudge", "Screening", "StageAgreement"]
