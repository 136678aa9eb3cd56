"""YAML: a list of mappings, read without tags and without aliases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragaliq.datasets.formats.json_document import rows_in
from ragaliq.datasets.formats.text import MAX_YAML_BYTES, read_text
from ragaliq.datasets.row import Row, RowError
from ragaliq.errors import ConfigurationError, DatasetError

__all__ = ["yaml_rows"]


def yaml_rows(path: Path) -> Iterator[Row | RowError]:
    """The rows of a file.

    Raises:
        ConfigurationError: PyYAML is not installed.
        DatasetError: It is not plain YAML, or holds no list of mappings.
    """
    value = _load(read_text(path, at_most=MAX_YAML_BYTES))
    if value is not None:
        yield from rows_in(value)


def _load(text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise ConfigurationError("reading YAML needs PyYAML: pip install 'ragaliq[cli]'") from None

    class PlainLoader(yaml.SafeLoader):
        """Refuses aliases, whose expansion can take all memory, and keys given twice."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.events.AliasEvent):
                mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
                raise _problem(mark, "aliases (*name) are not read")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002
            names = [key.value for key, _ in node.value if isinstance(key.value, str)]
            for key, _ in node.value:
                if names.count(key.value) > 1:
                    raise _problem(key.start_mark, "a key is there twice")
            return super().construct_mapping(node, deep=deep)

    try:
        return yaml.load(text, Loader=PlainLoader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as error:
        what = "tags (!name) are not read" if _is_tag(error) else error.problem or "it is broken"
        raise _problem(error.problem_mark, what) from None
    except (yaml.YAMLError, ValueError) as error:
        reason = getattr(error, "reason", "a value cannot be read")
        raise DatasetError(f"it is not YAML: {reason}") from None
    except RecursionError:
        raise DatasetError("it is nested too deeply") from None


def _is_tag(error: Any) -> bool:
    return "could not determine a constructor" in (error.problem or "")


def _problem(mark: Any, what: str) -> DatasetError:
    where = f"line {mark.line + 1}: " if mark is not None else ""
    return DatasetError(f"{where}it is not YAML that can be read: {what}")
