"""Every test that the page on security names is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_tests_that_the_page_names_are_there():
    page = (ROOT / "docs" / "pages" / "security.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if "`test" in line and line.startswith("|")]
    missing = []
    for row in rows:
        folder = ROOT
        for name in re.findall(r"`((?:tests/[\w/]+/)?test_\w+\.py)`", row):
            folder = (ROOT / name).parent if "/" in name else folder
            if not (folder / Path(name).name).is_file():
                missing.append(name)
    assert len(rows) > 15
    assert missing == []
