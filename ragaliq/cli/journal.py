"""The results file of a run, and the forms that are made of it at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ragaliq.cli.console import errors
from ragaliq.cli.going_on import Wanted
from ragaliq.cli.output_files import Named, is_same_file, require_writable
from ragaliq.cli.outputs import Results, Writer, writer_for
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.records import EvaluationRecord, Summary
from ragaliq.records.results_file import ResultsFile, read_results_file, read_settings

__all__ = ["Outputs"]


class Outputs:
    """Where the results of a run go.

    Args:
        out: What the user named.
        reads: The command's inputs, by what the user knows them as.

    Raises:
        ConfigurationError: A name does not say the form, there are two results files, or a file
            would be written over that is read.
    """

    def __init__(self, out: Sequence[Path], *, reads: Sequence[Named]) -> None:
        journals = [path for path in out if path.suffix.lower() == ".jsonl"]
        if len(journals) > 1:
            raise ConfigurationError("--out: one .jsonl file is enough")
        self._others: list[tuple[Path, Writer]] = [
            (path, writer_for(path)) for path in out if path not in journals
        ]
        self._wanted: Wanted | None = None
        self.journal: Path | None = journals[0] if journals else None
        if self.journal is None and self._others:
            # The other forms are made from it.
            self.journal = _beside(self._others[0][0], reads)
        written = [*(path for path, _ in self._others), self.journal]
        require_writable([("--out", path) for path in written], read=reads)

    def require_a_choice(self, *, resume: bool) -> None:
        """Refuse to write over results, and to go on with none.

        Raises:
            ConfigurationError: What is to happen is not clear.
        """
        if self.journal is None:
            if resume:
                raise ConfigurationError("--resume needs --out with the results file to go on with")
        elif self.journal.exists() and self.journal.stat().st_size and not resume:
            _require_results(self.journal)
            raise ConfigurationError(
                f"{self.journal} is there already, with the results of an earlier run; go on with "
                "it by --resume, delete it, or write to another file"
            )

    def open(
        self,
        settings: dict[str, Any],
        summary: Summary,
        *,
        done: set[str],
        wanted: Wanted | None,
        retry_failed: bool,
    ) -> ResultsFile | None:
        """The results file, with what is in it taken into `summary` and `done`.

        Args:
            settings: How the results are made.
            summary: Takes in what was evaluated before.
            done: Takes in the run ids of that.
            wanted: When going on: what is to be judged. Results of anything else count for nothing.
            retry_failed: Take out of the file what the judge failed on.

        Raises:
            DatasetError: The file cannot be used, or another run is writing to it.
        """
        if self.journal is None:
            return None
        # Only who holds the file may read what is left to do: another run might be doing it.
        file = ResultsFile(self.journal, settings=settings)
        try:
            if retry_failed:
                file.drop(_is_failure)
            if wanted is not None:
                wanted.sort_out(file)
            self._wanted = wanted
            failed = 0
            for record in self._results(self.journal):
                summary.add(record)
                done.add(record.run.run_id)
                failed += _is_failure(record)
        except BaseException:
            file.close()
            raise
        if failed:
            errors.print(f"the judge failed on {failed:,} earlier cases; --retry-failed for those")
        return file

    def write(self) -> None:
        """Make the other forms of the results file.

        Raises:
            DatasetError: One cannot be written.
        """
        for path, write in self._others:
            if self.journal is not None:
                try:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    write(Results(self.journal.name, self._results(self.journal)), path)
                except OSError as error:
                    raise DatasetError(f"{path}: {error.strerror or error}") from None

    def _results(self, journal: Path) -> Iterator[EvaluationRecord]:
        for record in read_results_file(journal):
            if self._wanted is None or record in self._wanted:
                yield record


def _beside(out: Path, reads: Sequence[Named]) -> Path:
    """The results file that `out` is made from: of the same name, unless that is an input."""
    journal = out.with_suffix(".jsonl")
    if any(path is not None and is_same_file(journal, Path(path)) for _, path in reads):
        return out.with_suffix(".results.jsonl")
    return journal


def _require_results(path: Path) -> None:
    """Nobody is told to delete a file that is something else.

    Raises:
        ConfigurationError: It is no results file.
    """
    try:
        read_settings(path)
    except (OSError, DatasetError) as error:
        problem = error if isinstance(error, DatasetError) else f"{path}: {error.strerror}"
        raise ConfigurationError(f"{problem}; it is left as it is: write to another file") from None


def _is_failure(record: EvaluationRecord) -> bool:
    return any(result.status.is_failure for result in record.results.values())
