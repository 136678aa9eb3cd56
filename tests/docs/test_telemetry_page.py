"""The telemetry page names every attribute and event, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from ragaliq.telemetry import names

PAGE = (Path(__file__).parents[2] / "docs/pages/telemetry.md").read_text()


def named_on_the_page():
    found = set()
    for code in re.findall(r"`([^`\n]+)`", PAGE):
        braces = re.fullmatch(r"([\w.<>]+)\{([\w.,]+)\}", code)
        if braces:
            found |= {braces[1] + part for part in braces[2].split(",")}
        else:
            found.add(code)
    return found


def test_every_name_is_on_the_page():
    wire = {
        value
        for name, value in vars(names).items()
        if name.isupper() and isinstance(value, str) and "." in value
    }
    assert wire - named_on_the_page() == set()


def test_no_name_on_the_page_is_made_up():
    known = {value for value in vars(names).values() if isinstance(value, str)}
    claimed = {name for name in named_on_the_page() if name.startswith("ragaliq.")}
    assert claimed - known == set()
