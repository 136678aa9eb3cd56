"""Labelled claims: claims with a person's verdict, to measure and calibrate judges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ragaliq.core.results import Verdict
from ragaliq.core.test_case import FIELDS
from ragaliq.datasets.cases import as_chunks, as_text, require_new
from ragaliq.datasets.rows import Row, fault, rows_of
from ragaliq.errors import DatasetError, RowError

LABEL_FIELDS: dict[str, tuple[str, ...]] = {
    "claim": ("claim", "statement", "hypothesis"),
    "context": (*FIELDS["context"], "evidence", "premise"),
    "label": ("label", "verdict"),
    "question": ("question", "query"),
    "id": ("id", "claim_id"),
    "group": ("group", "dataset"),
}
"""Each field of a labelled claim with the names it goes by; the first that is there counts."""

_LABELS: dict[str, tuple[bool, Verdict | None]] = {
    **dict.fromkeys(("1", "true", "supported", "supports"), (True, "SUPPORTED")),
    **dict.fromkeys(("0", "false", "not_supported", "unsupported"), (False, None)),
    **dict.fromkeys(("contradicted", "refutes"), (False, "CONTRADICTED")),
    "not_enough_info": (False, "NOT_ENOUGH_INFO"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledClaim:
    """A claim, its context, and a person's label.

    Attributes:
        id: Its id in the file, else the row's place.
        claim: The statement.
        context: The texts it is checked against.
        is_supported: Whether the context supports it.
        verdict: One of three; None if the label only says that it is not supported.
        question: The question, if known.
        group: Group of the figures, such as the data set; empty for none.
    """

    id: str
    claim: str
    context: tuple[str, ...]
    is_supported: bool
    verdict: Verdict | None
    question: str = ""
    group: str = ""

    @property
    def cluster(self) -> bytes:
        """Digest of the context: claims over one context are dependent and stay together."""
        digest = blake2b(digest_size=8)
        for text in self.context:
            digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
        return digest.digest()


def read_labelled_claims(path: str | Path) -> Iterator[LabelledClaim]:
    """Read labelled claims from a JSON, JSONL, CSV, TSV or Parquet file, also gzipped.

    A label is 1 or 0, true or false, or SUPPORTED, CONTRADICTED, NOT_ENOUGH_INFO. Extra columns
    are ignored.

    Args:
        path: The file.

    Raises:
        DatasetError: The file is missing, of no known format, empty, or has a bad row; with file,
            place and field, never its text.
    """
    path = Path(path)
    seen: dict[bytes, str] = {}
    for row in rows_of(path):
        try:
            if isinstance(row, RowError):
                raise row
            claim = _claim(row)
            require_new(claim.id, row.where, seen)
        except RowError as error:
            raise DatasetError(f"{path}, {error}") from None
        yield claim
    if not seen:
        raise DatasetError(f"{path}: there are no rows in it")


def _claim(row: Row) -> LabelledClaim:
    held = {str(name).strip().lower(): value for name, value in row.data.items()}
    values: dict[str, Any] = {}
    for field, names in LABEL_FIELDS.items():
        found = [held[name] for name in names if held.get(name) is not None]
        if found:
            values[field] = found[0]
    where = row.where
    for needed in ("claim", "context", "label"):
        if needed not in values:
            names_of = ", ".join(LABEL_FIELDS[needed])
            raise fault(where, f"no {needed} was found", f"name it one of {names_of}")
    defaults = {"claim": "", "id": f"row {row.number}", "question": "", "group": ""}
    texts = {
        field: as_text(values.get(field, default), where=where, field=field)
        for field, default in defaults.items()
    }
    if not texts["claim"].strip():
        raise fault(where, "field 'claim' is empty")
    label = values["label"]
    if isinstance(label, bool | float) and label in (0, 1):
        label = int(label)  # 1.0 is what a table makes of 1 when a cell of its column is empty
    known = _LABELS.get(str(label).strip().lower().replace(" ", "_"))
    if known is None:
        raise fault(
            where,
            "field 'label' is none of 1, 0, true, false, SUPPORTED, CONTRADICTED, NOT_ENOUGH_INFO",
        )
    chunks = as_chunks(values["context"], where=where)
    is_supported, verdict = known
    return LabelledClaim(
        **texts,
        context=tuple(chunk if isinstance(chunk, str) else chunk.text for chunk in chunks),
        is_supported=is_supported,
        verdict=verdict,
    )
