"""File of results that survives a crash: one JSON object a line, append-only.

The first line holds the settings, so that a run resumes only under the same ones; only metrics may
be added. A crash can cut only the last line short, which is dropped when the file is opened
again. One process at a time writes it, until it closes the file or ends.

While metrics are added, a line with all of a run's results follows the line with the first ones:
the header marks such a file, readers take the later line, and closing the file drops the first.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Self

from pydantic import ValidationError

from ragaliq.core.files import file_errors, lock, make_folder, owner_only
from ragaliq.errors import DatasetError
from ragaliq.records.record import EvaluationRecord

HEADER = "ragaliq_results"  # the first name in such a file
_REVISED = "revised"
_VERSION = 1


class ResultsFile:
    """Results file open for writing by one process at a time; a context manager.

    Args:
        path: The file; an existing one is continued.
        settings: Settings of the evaluation, JSON values by name. An existing file must have the
            same ones, but `metrics` may name further metrics than the file has.
        revised: Whether a line of a new file may replace an earlier one of the same run.
    """

    def __init__(
        self, path: str | Path, *, settings: Mapping[str, Any], revised: bool = False
    ) -> None:
        self.path = Path(path)
        self._settings, self._is_revised = dict(settings), revised
        with file_errors(self.path):
            make_folder(self.path.parent)
            # Neither "w" nor "a": nothing may change before the lock is held.
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._file: BinaryIO = os.fdopen(owner_only(self.path, flags), "r+b", buffering=0)
            try:
                self._begin()
            except BaseException:
                self._file.close()
                raise

    def _begin(self) -> None:
        """Lock the file where the system can, then write its header, or check it and continue."""
        file = self._file
        in_use = (
            f"{self.path}: another run is writing to it; wait for its end, or write to another file"
        )
        lock(file, DatasetError(in_use))
        # The last writer may have replaced the file before this one was locked.
        if not os.path.samestat(os.fstat(file.fileno()), self.path.stat()):
            raise DatasetError(f"{self.path}: another run has just written it; try again")
        if not os.fstat(file.fileno()).st_size:
            first = {HEADER: _VERSION, "settings": self._settings}
            first |= {_REVISED: True} if self._is_revised else {}
            _write(file, json.dumps(first, ensure_ascii=True).encode() + b"\n")
            return
        with self.path.open("rb") as held:
            header = _header_of(held.readline(), self.path)
        found: dict[str, Any] = header["settings"]
        wanted = self._settings
        self._is_revised = _REVISED in header
        had, asked = found.get("metrics"), wanted.get("metrics")
        is_extended = (
            isinstance(had, dict) and isinstance(asked, dict) and had.items() < asked.items()
        )
        if found | ({"metrics": asked} if is_extended else {}) != wanted:
            details = "; ".join(
                f"{name} was {_setting(found.get(name))} and is now {_setting(wanted.get(name))}"
                for name in {**found, **wanted}
                if found.get(name) != wanted.get(name)
            )
            advice = "write to another file"
            if isinstance(had, dict) and isinstance(asked, dict) and had.keys() - asked.keys():
                advice += f", or to add a metric name these too: {', '.join(had)}"
            raise DatasetError(
                f"{self.path}: its results were made under other settings ({details}); {advice}"
            )
        file.truncate(_end_of_last_line(file))
        file.seek(0, os.SEEK_END)
        if is_extended:
            self._is_revised = True
            self._replace(lambda record: record)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, record: EvaluationRecord) -> None:
        """Add a result; once this returns, a crash of the process does not lose it."""
        with file_errors(self.path):
            _write(self._file, record.model_dump_json().encode() + b"\n")

    def rewrite(self, change: Callable[[EvaluationRecord], EvaluationRecord | None]) -> None:
        """Change results, all at once or, if the process ends here, not at all.

        Args:
            change: Returns each result, a replacement, or None to remove it. Called twice for each.
        """
        if any(change(record) is not record for record in read_results_file(self.path)):
            self._replace(change)

    def _replace(self, change: Callable[[EvaluationRecord], EvaluationRecord | None]) -> None:
        target = self.path.resolve()  # a link stays one
        replacement = target.with_name(f".{target.name}.new")
        with file_errors(self.path):
            replacement.unlink(missing_ok=True)
            kept = ResultsFile(replacement, settings=self._settings, revised=self._is_revised)
            for record in read_results_file(self.path):
                if (changed := change(record)) is not None:
                    kept.append(changed)
            shutil.copymode(target, replacement)  # its owner may share it
            os.fsync(kept._file.fileno())
            # The new file is locked already, so that no other process writes in between.
            replacement.replace(target)
        self._file.close()
        self._file = kept._file

    def close(self) -> None:
        """Close the file; appended results survive a loss of power too."""
        if self._file.closed:
            return
        if self._is_revised:
            wanted = self._settings["metrics"].keys()
            records = read_results_file(self.path)
            self._is_revised = any(wanted - record.results.keys() for record in records)
            self._replace(lambda record: record)
        with file_errors(self.path), self._file:
            os.fsync(self._file.fileno())


def _write(file: BinaryIO, data: bytes) -> None:
    """Write all of it, or remove the part that was written.

    On a nearly full disk an unbuffered write may be partial without an error.
    """
    start, rest = file.tell(), memoryview(data)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError:
        file.truncate(start)
        file.seek(start)
        raise


def read_settings(path: str | Path) -> dict[str, Any]:
    """Read the settings of a results file."""
    with file_errors(path), Path(path).open("rb") as file:
        settings: dict[str, Any] = _header_of(file.readline(), Path(path))["settings"]
    return settings


def _setting(value: object) -> str:
    """Format a setting as on the command line."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {each}" for name, each in value.items())
    return "not set" if value is None else str(value)


def read_results_file(path: str | Path) -> Iterator[EvaluationRecord]:
    """Read the results of a file in the order they were written, in bounded memory."""
    path = Path(path)
    with file_errors(path), path.open("rb") as file:
        header = _header_of(file.readline(), path)
        start, latest = file.tell(), dict[str, int]()
        if _REVISED in header:
            latest = {record.run.run_id: number for number, record in _lines(file, path)}
            file.seek(start)
        for number, record in _lines(file, path):
            if latest.get(record.run.run_id, number) == number:
                yield record


def _lines(file: BinaryIO, path: Path) -> Iterator[tuple[int, EvaluationRecord]]:
    for number, line in enumerate(file, start=2):
        if line.endswith(b"\n"):
            try:
                yield number, EvaluationRecord.model_validate_json(line)
            except ValidationError as error:
                place = ".".join(str(part) for part in error.errors()[0]["loc"]) or "it"
                raise DatasetError(
                    f"{path}, line {number}: {place} is not as ragaliq writes it"
                ) from None


def is_results_file(path: str | Path) -> bool:
    """True for a file that begins as a results file does."""
    with file_errors(Path(path)), Path(path).open("rb") as file:
        return f'{{"{HEADER}"'.encode() in file.read(100)


def _header_of(line: bytes, path: Path) -> dict[str, Any]:
    try:
        header: dict[str, Any] = json.loads(line)
        version, settings = header[HEADER], header["settings"]
    except (ValueError, TypeError, LookupError, RecursionError):
        raise DatasetError(
            f"{path} is not a results file of ragaliq (its first line does not say so); "
            "`ragaliq evaluate --out results.jsonl` writes one"
        ) from None
    if version != _VERSION:
        raise DatasetError(f"{path} was written by a later ragaliq; update ragaliq to read it")
    if not isinstance(settings, dict):
        raise DatasetError(f"{path}, line 1: the settings are not an object")
    return header


def _end_of_last_line(file: BinaryIO) -> int:
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - 65536)
        file.seek(start)
        position = file.read(end - start).rfind(b"\n")
        if position >= 0:
            return start + position + 1
        end = start
    return 0
