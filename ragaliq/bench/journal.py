"""A file of what a judge has decided, so that nothing that was paid for is asked twice.

One JSON object a line; the first says what was asked of whom. A line that a sudden end cut short is
the last one, and is dropped when the file is opened again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from ragaliq.bench.judged import JudgedClaim
from ragaliq.core.results import JudgeUsage
from ragaliq.errors import DatasetError
from ragaliq.judges.base import LLMJudge

__all__ = ["Journal", "journal_settings"]

_HEADER = "ragaliq_judged_claims"
_VERSION = 1


def journal_settings(data: Path, judge: LLMJudge) -> dict[str, str | None]:
    """What decisions depend on: the data, the judge, its parameters and its calibration."""
    digest = blake2b(digest_size=16)
    with data.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return {
        "data": digest.hexdigest(),
        "judge": judge.name,
        "model": judge.model,
        "fingerprint": judge.fingerprint(),
        "calibration": judge.calibration,
    }


class Journal:
    """A journal that is continued; a context manager.

    Args:
        path: The file; made when it is not there.
        settings: See `journal_settings`.

    Attributes:
        judged: What it holds, by id. A claim on which the judge failed is not in it: it is asked
            again.
        usage: What everything in it cost, failures included.

    Raises:
        DatasetError: The file is no journal, is about other data or another judge, or cannot be
            written.
    """

    def __init__(self, path: str | Path, settings: Mapping[str, str | None]) -> None:
        self.path = Path(path)
        self.judged: dict[str, JudgedClaim] = {}
        self.usage = JudgeUsage()
        header = {_HEADER: _VERSION, **settings}
        try:
            held = self.path.read_bytes() if self.path.exists() else b""
            lines = held.splitlines(keepends=True)
            # Only what is known to be a journal is written to, and loses a line that was cut short.
            end = sum(len(line) for line in self._read(lines, header)) if lines else 0
            # Bytes and no buffer: a line is in the file as soon as it is written.
            self._file = self.path.open("ab", buffering=0)
            if end < len(held):
                self._file.truncate(end)
            if not lines:
                self._file.write(json.dumps(header).encode() + b"\n")
        except OSError as error:
            raise DatasetError(f"{self.path}: {error.strerror or error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def append(self, judged: JudgedClaim) -> None:
        """Add a decision; the end of the process does not lose it."""
        try:
            self._file.write(judged.model_dump_json().encode() + b"\n")
        except OSError as error:
            raise DatasetError(f"{self.path}: {error.strerror or error}") from None

    def _read(self, lines: list[bytes], wanted: Mapping[str, object]) -> list[bytes]:
        """Take in the lines; returns those that are whole."""
        self._require_header(lines[0], wanted)
        whole = lines if lines[-1].endswith(b"\n") else lines[:-1]
        for number, line in enumerate(whole[1:], start=2):
            try:
                judged = JudgedClaim.model_validate_json(line)
            except ValidationError:
                raise DatasetError(f"{self.path}, line {number} is no judged claim") from None
            self.usage += judged.usage
            if judged.failure is None:
                self.judged[judged.id] = judged
        return whole

    def _require_header(self, line: bytes, wanted: Mapping[str, object]) -> None:
        try:
            found = json.loads(line)
            is_journal = found[_HEADER] == _VERSION and line.endswith(b"\n")
        except (ValueError, TypeError, KeyError):
            is_journal = False
        if not is_journal:
            raise DatasetError(f"{self.path} is no journal of judged claims; name another file")
        changed = [name for name in wanted if found.get(name) != wanted[name]]
        if changed:
            raise DatasetError(
                f"{self.path} is about something else ({', '.join(changed)} changed since); name "
                "another file"
            )
