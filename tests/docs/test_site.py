"""The built site works from disk, without a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?https?:
    |<link[^>]*rel=["']?(?:stylesheet|preload|preconnect)[^>]*https?:
    |url\(["']?https?:|@import""",
    re.VERBOSE,
)


@pytest.mark.slow
def test_pages_fetch_nothing_from_elsewhere_and_can_be_searched(tmp_path):
    site = tmp_path / "site"
    command = ["mkdocs", "build", "--quiet", "--strict", "--site-dir", str(site)]
    subprocess.run(
        [sys.executable, "-m", *command, "--config-file", ROOT / "docs/mkdocs.yml"],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        check=True,
        timeout=110,
    )
    pages = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(pages) > 40
    assert [page for page in pages if FETCHED.search(page.read_text(encoding="utf-8"))] == []
    found = (site / "search/search_index.js").read_text(encoding="utf-8")
    assert "ragaliq.Monitor" in found
    assert "--fail-under" in found
