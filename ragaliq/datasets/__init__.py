"""Cases from files: JSON, JSONL, CSV, YAML and Parquet, under the names other tools give fields."""

from ragaliq.datasets.case_reader import CaseReader, SkippedRow, read_cases
from ragaliq.datasets.fields import FIELDS

__all__ = ["FIELDS", "CaseReader", "SkippedRow", "read_cases"]
