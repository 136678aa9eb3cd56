"""Cases from rows: recognised fields, converted values, and the reader of a file."""

from __future__ import annotations

import itertools
import json
import logging
import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import ValidationError

from ragaliq.capture.texts import Reader, text_blocks
from ragaliq.core.checks import did_you_mean
from ragaliq.core.citations import citations_in
from ragaliq.core.run import RunInfo
from ragaliq.core.test_case import FIELDS, ContextChunk, RAGTestCase, Turn
from ragaliq.datasets.rows import Row, fault, rows_of
from ragaliq.errors import ConfigurationError, DatasetError, RowError
from ragaliq.records.results_file import HEADER
from ragaliq.records.sinks import Sink

logger = logging.getLogger(__name__)

# Fields by the names of the usual tools (`FIELDS`).

# LangSmith exports an example as nested inputs and outputs, in tables as JSON strings.
_EXPECTED = ("reference_outputs", "reference_output", "reference", "expected_output")
_NESTED = ("inputs", "outputs", "input", "output", *_EXPECTED)
_FIELD_OF = {alias: field for field, aliases in FIELDS.items() for alias in aliases}


CASE_NEEDS = ("query", "response")
"""The fields that every row of a file of cases has."""


def require_known(fields: Mapping[str, str], *, argument: str = "fields") -> None:
    """Check that the user's field names exist; `argument` is for the message."""
    for field in fields:
        if field not in FIELDS:
            meant = recognised(field)
            hint = f" (did you mean {meant!r}?)" if meant else did_you_mean(field, FIELDS)
            raise ConfigurationError(
                f"{argument}: a case has no field {field!r}{hint}; it has {', '.join(FIELDS)}"
            )


def recognised(name: str) -> str | None:
    """Field of a case with this column name, if any."""
    return _FIELD_OF.get(plain_name(name))


def plain_name(path: str) -> str:
    """Column name in the spelling of `FIELDS`."""
    return path.rpartition(".")[2].lower().replace(" ", "_").replace("-", "_")


_BLANKS = ("", "nan", "NaN", "<NA>")  # how numpy and pandas write a missing value as a text


def is_absent(value: Any) -> bool:
    """True for a missing value: None, an empty text, NaN, or a string form of it."""
    # A value may be an array, which `==` compares item by item.
    return (
        value is None
        or (isinstance(value, str) and value in _BLANKS)
        or (isinstance(value, float) and math.isnan(value))
    )


def _values(data: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Every value with its path and its plain name, including nested ones."""
    for key, value in data.items():
        name = str(key).strip()
        plain = plain_name(name)
        nested = _nested(plain, value) if plain in _NESTED else None
        if plain == "outputs" and (nested == {} or is_absent(value)):
            yield name, "output", None  # of a run that failed, as LangSmith writes it
        elif nested is not None:
            for inner, held in nested.items():
                yield f"{name}.{inner}", str(inner).strip(), held
        else:
            yield name, name, value


def _nested(name: str, value: Any) -> Mapping[Any, Any] | None:
    """Named values inside an input or output with this plain name, if it is a mapping."""
    if isinstance(value, Mapping):
        return value
    read = _json_in(value) if isinstance(value, str) else None
    if not isinstance(read, Mapping):
        return None
    # The answer may be JSON itself.
    fields = {_FIELD_OF.get(plain_name(str(inner))) for inner in read}
    is_whole = name in _FIELD_OF and fields.isdisjoint(("query", "response", "expected_answer"))
    return None if is_whole else read


def _fields_of(row: Row, own_names: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Values of a row by the case's field, None for a blank, and all other values."""
    found: dict[str, dict[str, Any]] = {}
    rest: dict[str, Any] = {}
    owned = {name: field for field, name in own_names.items()}
    for path, name, value in _values(row.data):
        field = owned.get(path) or owned.get(name)
        if field is None:
            field = _FIELD_OF.get(plain_name(name))
            if field == "response" and plain_name(path.partition(".")[0]) in _EXPECTED:
                field = "expected_answer"
            if field in own_names:  # a user who says where a field is means that it is nowhere else
                field = None
        held = rest if field is None else found.setdefault(field, {})
        if not is_absent(value):
            held[path] = value
    values = {}
    for field, candidates in found.items():
        paths = list(candidates)
        if len(paths) > 1 and field in ("context", "id"):
            names = FIELDS[field]
            # A LangSmith experiment names the run and the example: only the example's id is stable.
            paths.sort(key=lambda path: names.index(plain_name(path)), reverse=field == "id")
        elif any(candidates[path] != candidates[paths[0]] for path in paths[1:]):
            raise fault(
                row.where,
                f"{' and '.join(map(repr, paths))} both look like the {field}",
                f"say which: --field {field}={shlex.quote(paths[0])} (in Python "
                f"fields={{{field!r}: {paths[0]!r}}})",
            )
        values[field] = candidates[paths[0]] if paths else None
    return values, rest


# Values: texts, lists of texts, chunks.

_TEXT_KEYS = ("text", "page_content", "content", "chunk", "passage")
_ID_KEYS = ("id", "chunk_id", "doc_id", "document_id")
_SCORE_KEYS = ("score", "similarity", "relevance_score")
_READER = Reader()
# A list as Python, pandas or numpy print it: neither JSON nor a retrieved text.
_PRINTED = re.compile(r"""(array\()?\[\s*(['"]|\{'|Document\()""")


def as_text(value: Any, *, where: str, field: str) -> str:
    """Convert a value to a text; numbers are formatted, and a list of one text is that text."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        raise fault(where, f"field {field!r} must be a text, not {value}")
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return value[0]
    raise fault(where, f"field {field!r} must be a text, not {_kind(value)}")


def as_chunks(value: Any, *, where: str) -> list[str | ContextChunk]:
    """Convert a value to chunks: texts, or objects with a text, an id, a score, metadata."""
    held = value.tolist() if hasattr(value, "tolist") else value
    # 42 or true is a mistake in the file: as a text, it would support nothing.
    if not isinstance(held, str | Mapping | list | tuple):
        raise fault(where, f"field 'context' must be a text or a list of them, not {_kind(held)}")
    chunks: list[str | ContextChunk] = []
    for place, item in enumerate(_items(held, where=where, field="context")):
        field = f"context[{place}]"
        if not isinstance(item, Mapping):
            chunks.append(as_text(item, where=where, field=field))
            continue
        text = next((item[key] for key in _TEXT_KEYS if isinstance(item.get(key), str)), None)
        if text is None:
            raise fault(where, f"{field} has no text", f"name it one of {', '.join(_TEXT_KEYS)}")
        own_id = next((item[key] for key in _ID_KEYS if item.get(key) is not None), None)
        is_id = own_id is None or (isinstance(own_id, int | str) and not isinstance(own_id, bool))
        try:
            score = float(next((item[k] for k in _SCORE_KEYS if item.get(k) is not None), math.nan))
        except (TypeError, ValueError, OverflowError):
            score = math.nan
        metadata = item.get("metadata")
        chunk = ContextChunk(
            text=text,
            id=own_id if is_id else str(own_id),
            score=score if math.isfinite(score) else None,
            metadata=dict(metadata) if isinstance(metadata, Mapping) else {},
        )
        chunks.append(chunk)
    return chunks


def split_cell(cell: str, separator: str) -> list[str] | None:
    """Split a plain-text cell into chunks; None for a list or object in JSON."""
    if _json_in(cell) is not None:
        return None
    inside = cell.strip()
    if inside.startswith("[") and inside.endswith("]"):
        inside = inside[1:-1]
    return [part.strip() for part in inside.split(separator) if part.strip()]


def as_turns(value: Any, *, where: str) -> list[Turn]:
    """Convert messages with a role, a text and optional chunks to the conversation's turns."""
    turns: list[Turn] = []
    told: list[str | ContextChunk] = []
    for place, item in enumerate(_items(value, where=where, field="history")):
        field = f"history[{place}]"
        held = dict(item) if isinstance(item, Mapping) else {}
        inner = held.get("data")
        held |= inner if isinstance(inner, Mapping) else {}  # as LangChain writes messages
        said = {"role": held.get("role", held.get("type")), "content": held.get("content")}
        if said["content"] is None:
            said["content"] = held.get("text")
        message = _READER.message(said if held else item)
        if message is None:
            raise fault(where, f"{field} must be an object with a role and a text")
        names = (name for name in held if recognised(name) == "context")
        chunks = [c for name in names if held[name] for c in as_chunks(held[name], where=where)]
        if message.role == "tool":
            told += message.texts
        elif message.role == "user":
            turns.append(Turn(role="user", text=message.text, context=chunks))
            told = []
        elif message.role == "assistant" and (message.text.strip() or chunks):
            turns.append(Turn(role="assistant", text=message.text, context=[*told, *chunks]))
            told = []
    return turns


def _texts(value: Any, *, where: str, field: str) -> list[str]:
    items = enumerate(_items(value, where=where, field=field))
    return [as_text(item, where=where, field=f"{field}[{place}]") for place, item in items]


def _metadata(value: Any, *, where: str) -> dict[str, Any]:
    held = _json_in(value) if isinstance(value, str) else value or {}
    if not isinstance(held, Mapping):
        raise fault(where, f"field 'metadata' must be an object, not {_kind(value)}")
    return {str(key): each for key, each in held.items()}


def _items(value: Any, *, where: str, field: str) -> list[Any]:
    if hasattr(value, "tolist"):  # arrays, as tables hold them
        value = value.tolist()
    elif isinstance(value, str):
        read = _json_in(value)
        if read is None and _PRINTED.match(value.strip()):
            raise fault(
                where,
                f"field {field!r} is a list as Python prints it",
                "write lists as JSON (json.dumps), one column each (context_1, context_2), or "
                "write the table as Parquet or JSON Lines",
            )
        value = value if read is None else read
    return list(value) if isinstance(value, list | tuple) else [value]


def _json_in(text: str) -> Any:
    """List or object that a cell holds as JSON; None for any other text."""
    stripped = text.strip()
    if stripped.startswith(("[", "{")):
        try:
            return json.loads(stripped)
        except (ValueError, RecursionError):
            return None
    return None


def _kind(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else f"of type {type(value).__name__}"


# A row as a case, or its problem.

_READ: Mapping[str, Callable[..., Any]] = {
    "context": as_chunks,
    "history": as_turns,
    "expected_facts": partial(_texts, field="expected_facts"),
    "tags": partial(_texts, field="tags"),
    "metadata": _metadata,
}
"""Readers of the fields that are not texts."""

# Stores keep this many characters: two longer ids could become one there.
_MAX_ID = 128


def case_of(
    row: Row,
    own_names: Mapping[str, str],
    *,
    needed: Sequence[str] = CASE_NEEDS,
    split_context: str | None = None,
) -> RAGTestCase:
    """Make a case of a row. Values without a field go into the case's metadata.

    A row without an id gets `row` and its number, so that the same file gives the same ids. A blank
    question or answer is an empty text.
    """
    found, rest = _fields_of(row, own_names)
    where = row.where
    if not found.keys() >= set(needed):
        raise _missing(row, found, own_names, needed)
    values = {field: value for field, value in found.items() if value is not None}
    if split_context is not None and isinstance(cell := values.get("context"), str):
        values["context"] = split_cell(cell, split_context) or cell
    expected = values.get("expected_answer")
    # A list of reference answers is a list of expected facts.
    if isinstance(expected, list) and len(expected) != 1:
        facts = _items(values.get("expected_facts", []), where=where, field="expected_facts")
        values["expected_facts"] = [*facts, *values.pop("expected_answer")]
    blocks = values.get("response")
    if isinstance(blocks, list) and blocks and all(isinstance(each, Mapping) for each in blocks):
        values["response"] = "".join(text_blocks(blocks))  # as Anthropic's API returns an answer
    values = {"id": f"row {row.number}", "query": "", "response": ""} | values
    read: dict[str, Any] = {
        field: _READ[field](value, where=where)
        if field in _READ
        else as_text(value, where=where, field=field)
        for field, value in values.items()
    }
    if len(read["id"]) > _MAX_ID:
        raise fault(where, f"its id is longer than {_MAX_ID} characters")
    metadata = read.pop("metadata", {})
    run = _run_in(rest, metadata, read["id"], where=where)
    metadata = rest | metadata
    try:
        return RAGTestCase(**read, citations=citations_in(blocks), run=run, metadata=metadata)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"]) or "the row"
        raise fault(where, f"{place}: {problem['msg']}") from None


def _run_in(
    rest: dict[str, Any], metadata: dict[str, Any], case_id: str, *, where: str
) -> RunInfo | None:
    """Take a case's run out of its column, or the chance that it was sampled out of either.

    Other tools use the name `run` for other things, which stay.
    """
    if "run" in rest:
        held = rest["run"]
        with suppress(ValidationError):
            run = RunInfo.model_validate(_json_in(held) if isinstance(held, str) else held)
            del rest["run"]
            return run
    chance = "sampling_probability"
    for values in (rest, metadata):
        if values.get(chance) not in (None, ""):
            try:
                return RunInfo(run_id=case_id, sampling_probability=values.pop(chance))
            except ValidationError:
                raise fault(where, f"field {chance!r} must be above 0 and at most 1") from None
    return None


def _missing(
    row: Row, found: Mapping[str, Any], own_names: Mapping[str, str], needed: Sequence[str]
) -> RowError:
    """List everything that a row lacks, with the options that would name its columns."""
    names = [path[:_NAME] for path, _, _ in _values(row.data)]
    wanted = [*needed, "context"] if "response" in needed else needed
    lacking = [field for field in wanted if field not in found]
    *some, last = (f"no {field}" for field in lacking)
    problem = f"{', '.join(some)} and {last} were found" if some else f"{last} was found"
    # Show the names only if some are known: a table without a header would be quoted here.
    columns = f"none of its {len(names)} columns has a known name"
    if any(map(recognised, names)) or own_names or all(map(_is_like_a_name, names)):
        more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        columns = f"the columns are {', '.join(map(repr, names[:_SHOWN]))}{more}"
    wrong = [
        f"no column is called {own_names[field]!r} (--field {field}={own_names[field]})"
        for field in lacking
        if field in own_names
    ]
    options = " ".join(f"--field {field}=COLUMN" for field in lacking)
    ways = f"say where they are: {options} (in Python fields={dict.fromkeys(lacking, 'COLUMN')})"
    if lacking == ["response", "context"]:
        ways += ", or have your application answer the questions: --app MODULE:NAME"
    return fault(row.where, problem, f"{', '.join([columns, *wrong])}; {ways}")


def _is_like_a_name(name: str) -> bool:
    """True if a text can be a column's name: one or two words of letters, digits and `_`."""
    return len(name) <= _NAME and len(name.split()) <= 2 and plain_name(name).isidentifier()


# The cases of a file.

OnError = Literal["raise", "skip"]

_REMEMBERED = 100
_SHOWN = 12
_NAME = 40


@dataclass(frozen=True)
class SkippedRow:
    """A skipped row: its place and its problem, without any of its text."""

    where: str
    problem: str


class CaseReader:
    """Reader of a file's cases; each iteration starts from the beginning.

    Attributes:
        path: The file.
        skipped: Rows skipped by the last reading; with `on_error="skip"` only.
        skipped_rows: The first 100 of them.
        columns: The names in the rows of the last reading, the first 100 there are.
        row: The number of the row, from 1, that the last case came from.
        has_spans: Whether its cases come from spans, on which products keep scores.
    """

    has_spans = False

    def __init__(
        self,
        path: Path,
        *,
        fields: Mapping[str, str],
        on_error: OnError,
        encoding: str | None = None,
        needed: Sequence[str] = CASE_NEEDS,
        split_context: str | None = None,
    ) -> None:
        self.path = path
        self._split_context = split_context
        self.skipped = 0
        self.skipped_rows: list[SkippedRow] = []
        self.columns: dict[str, None] = {}
        self.row = 0
        self._encoding, self._needed = encoding, needed
        self._fields = dict(fields)
        self._on_error = on_error

    def __iter__(self) -> Iterator[RAGTestCase]:
        self.skipped, self.skipped_rows, self.columns = 0, [], {}
        seen: dict[bytes, str] = {}
        unseen = set(self._fields.values())
        is_empty, is_begun, is_noted = True, False, self._split_context is not None
        for row in rows_of(self.path, self._encoding):
            is_empty = False
            try:
                if isinstance(row, RowError):
                    raise row
                if unseen:
                    unseen.difference_update(*(names[:2] for names in _values(row.data)))
                # Rows usually have the same keys, but may have any.
                if row.data.keys() - self.columns.keys() and len(self.columns) < _REMEMBERED:
                    names = (str(name)[:_NAME] for name in row.data)
                    self.columns.update(dict.fromkeys(itertools.islice(names, _REMEMBERED)))
                case = case_of(
                    row,
                    self._fields,
                    needed=self._needed,
                    split_context=self._split_context,
                )
                is_noted = is_noted or self._noted(case, row)
                require_new(case.id, row.where, seen)
                self.row = row.number
            except RowError as error:
                if isinstance(row, Row) and HEADER in row.data:
                    raise DatasetError(
                        f"{self.path} is a results file, not a file of cases: `ragaliq cases` "
                        "makes cases of it, `ragaliq report` and `ragaliq compare` show it"
                    ) from None
                self._bad(error, is_first=not is_begun)
            else:
                is_begun = True
                yield case
        if is_empty:
            raise DatasetError(f"{self.path}: there are no rows in it")
        for field, name in self._fields.items():
            if name in unseen:
                raise DatasetError(
                    f"{self.path}: no row has {name!r}, which "
                    f"was named as the {field}; the rows have {self.named_columns}"
                )

    @property
    def named_columns(self) -> str:
        """The columns for a message, a dozen at most."""
        # Show the names only if some are known: a table without a header would be quoted.
        if not any(recognised(name) for name in self.columns):
            return f"{len(self.columns)} columns, none under a known name"
        shown = ", ".join(repr(name) for name in list(self.columns)[:_SHOWN])
        more = len(self.columns) - _SHOWN
        return f"{shown} and {more} more" if more > 0 else shown

    def remarks(self) -> Iterator[str]:
        """Lines about the last reading for a person, other than skipped rows."""
        yield from ()

    def _noted(self, case: RAGTestCase, row: Row) -> bool:
        """Warn about a context of one chunk that looks like several in one cell."""
        cell = case.context[0] if len(case.context) == 1 else ""
        if not isinstance(cell, str) or "\n" in cell:
            return False
        signs = "|," if cell.strip().startswith("[") else "|"
        separator = next((sign for sign in signs if len(split_cell(cell, sign) or ()) > 1), "")
        if separator:
            logger.warning(
                "%s, %s: the context is one chunk, and looks like several in one cell; if so, add "
                "--split-context '%s' (in Python split_context=)",
                *(self.path, row.where, separator),
            )
        return bool(separator)

    def _bad(self, error: RowError, *, is_first: bool) -> None:
        """Raise the problem of a part of the file, or count it."""
        if self._on_error == "raise":
            # A file that begins with a mistake may consist of mistakes.
            way = "" if is_first else "; --skip-bad-rows (on_error='skip') skips such parts"
            raise DatasetError(f"{self.path}, {error}{way}") from None
        self.skipped += 1
        if len(self.skipped_rows) < _REMEMBERED:
            where, _, problem = str(error).partition(": ")
            self.skipped_rows.append(SkippedRow(where, problem))


@runtime_checkable
class ProductRuns(Protocol):
    """Reader of a product's runs, whose scores go back there.

    Attributes:
        sink: Writes scores back.
        scored: Number of runs with a score.
        unscored: Number of runs without a score, which are read.
    """

    sink: Sink
    scored: int
    unscored: int

    def skip_scored(self, metrics: Sequence[str] = ()) -> None:
        """Skip the runs with a score for each of these metrics; without metrics, for any."""


def require_new(case_id: str, where: str, seen: dict[bytes, str]) -> None:
    """Refuse a second case with the same id; `seen` collects the ids."""
    # Eight bytes instead of the id itself: a file may have many millions.
    key = blake2b(case_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    if key in seen:
        raise fault(where, f"its id is also that of {seen[key]}", "give each its own id")
    seen[key] = where
