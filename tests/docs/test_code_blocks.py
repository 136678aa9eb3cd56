"""Every Python block of the README and the documentation runs as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/pages").rglob("*.md"))]


def blocks():
    for page in PAGES:
        for number, (language, code) in enumerate(BLOCK.findall(page.read_text()), start=1):
            if language == "python":
                name = f"{page.relative_to(ROOT)}-{number}"
                yield pytest.param(code, id=name)


@pytest.mark.parametrize("code", list(blocks()))
def test_the_block_runs(code, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith(("RAGALIQ_", "OTEL_"))},
            "PYTHONPATH": ":".join(sys.path),
            "ANTHROPIC_API_KEY": "not-a-key",
        },
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_readme_shows_what_its_first_block_prints():
    found = BLOCK.findall((ROOT / "README.md").read_text())
    position = next(i for i, (language, _) in enumerate(found) if language == "python")
    code, promised = found[position][1], found[position + 1][1]
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert done.stdout == promised


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_somewhere(page):
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
