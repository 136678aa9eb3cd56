"""Cases from files: tables with the usual column names, and traces."""

from ragaliq.core.test_case import FIELDS
from ragaliq.datasets.cases import CaseReader, SkippedRow
from ragaliq.datasets.labelled_claims import LabelledClaim, read_labelled_claims
from ragaliq.datasets.opening import read_cases, read_questions

__all__ = [
    "FIELDS",
    "CaseReader",
    "LabelledClaim",
    "SkippedRow",
    "read_cases",
    "read_labelled_claims",
    "read_questions",
]
