"""Every command that the pages give for a figure selects a benchmark."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = re.compile(r'ARGS="-k (\w+)"')
NAMES = [
    name
    for path in sorted((ROOT / "tests").rglob("test_*.py"))
    for name in (path.stem, *re.findall(r"def (test_\w+)", path.read_text("utf-8")))
]
PAGES = sorted((ROOT / "docs/pages").glob("*.md"))
WORDS = [word for page in PAGES for word in COMMAND.findall(page.read_text("utf-8"))]


@pytest.mark.parametrize("word", WORDS)
def test_a_word_that_a_page_selects_benchmarks_by_is_in_the_name_of_one(word):
    assert any(word in name for name in NAMES)


def test_pages_give_such_commands():
    assert WORDS
