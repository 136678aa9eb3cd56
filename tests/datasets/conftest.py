"""Cases read from a file."""

import json

import pytest

from command_line import ragaliq
from ragaliq.datasets import read_cases

__all__ = ["ragaliq"]


@pytest.fixture
def cases_of(tmp_path):
    """The cases of a file with these rows."""

    def read(*rows, **options):
        path = tmp_path / "cases.jsonl"
        path.write_text("\n".join(json.dumps(row) for row in rows))
        return list(read_cases(path, **options))

    return read
