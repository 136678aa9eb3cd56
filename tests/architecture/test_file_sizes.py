"""Files stay small enough to be read in one go."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT = 300


@pytest.mark.parametrize("folder", ["ragaliq", "integrations", "tests", "examples"])
def test_no_source_file_is_longer_than_300_lines(folder):
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in (ROOT / folder).rglob("*.py")
    }
    assert lengths
    assert {path: lines for path, lines in lengths.items() if lines > LIMIT} == {}
