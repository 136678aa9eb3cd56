"""Cases from files: JSON, JSONL, CSV, YAML and Parquet, under the names other tools give fields."""

from ragaliq.datasets.case_reader import CaseReader, SkippedRow, read_cases
from ragaliq.datasets.fields import FIELDS
from ragaliq.datasets.labelled_claims import LabelledClaim, read_labelled_claims

__all__ = [
    "FIELDS",
    "CaseReader",
    "LabelledClaim",
    "SkippedRow",
    "read_cases",
    "read_labelled_claims",
]
