"""Every Python block of the README and the documentation runs as it stands."""

import importlib
import os
import re
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/pages").rglob("*.md"))]


# Runs each file as a script of its own, one after the other, in one process for each page.
RUN = "import runpy, sys\nfor path in sys.argv[1:]: runpy.run_path(path, run_name='__main__')"


def blocks(page):
    for number, (language, code) in enumerate(BLOCK.findall(page.read_text()), start=1):
        if language == "python":
            yield number, code


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(blocks(page))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_blocks_of_a_page_run(page, tmp_path, warm_python):
    together = tmp_path / "together.py"
    together.write_text(RUN)
    scripts = []
    for number, code in blocks(page):
        scripts.append(tmp_path / f"{page.stem}-{number}.py")
        scripts[-1].write_text(code)
    done = warm_python.run(
        together,
        *scripts,
        cwd=tmp_path,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith(("RAGALIQ_", "OTEL_"))},
            "PYTHONPATH": ":".join(sys.path),
            "ANTHROPIC_API_KEY": "not-a-key",
        },
    )
    assert done.returncode == 0, done.stderr
    # What goes wrong off the request path is logged, not raised: it must not hide here either.
    # A collector that is not there may be complained of.
    assert not re.search(r"could not be handled|\braised\b", done.stderr), done.stderr


def test_the_readme_shows_what_its_first_block_prints(tmp_path, warm_python):
    found = BLOCK.findall((ROOT / "README.md").read_text())
    position = next(i for i, (language, _) in enumerate(found) if language == "python")
    script = tmp_path / "readme.py"
    script.write_text(found[position][1])
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    assert warm_python.run(script, cwd=tmp_path, env=env).stdout == found[position + 1][1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_somewhere(page):
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_elsewhere_is_well_formed(page):
    text = BLOCK.sub("", page.read_text())
    for link in re.findall(r"\]\((https?://[^)]*)\)", text):
        parts = urlsplit(link)
        assert parts.scheme == "https", link
        assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", parts.hostname or ""), link
        assert not re.search(r"\s", link), link


def anchors(page):
    """Ids of a page's headings, as the site has them."""
    for title in re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text()), re.MULTILINE):
        named = re.search(r" \{#([\w-]+)\}$", title)
        text = re.sub(r"[^\w\s-]", "", title).strip().lower()
        yield named[1] if named else re.sub(r"[-\s]+", "-", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_heading_leads_to_one(page):
    links = re.findall(r"\]\((?!https?://)([^)#]*)#([\w-]+)\)", page.read_text())
    assert [
        f"{path}#{place}"
        for path, place in links
        if place not in anchors(page.parent / path if path else page)
    ] == []


def test_the_page_of_commands_has_the_annexes_commands_too(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    page = importlib.import_module("hooks").on_page_markdown("<!-- commands -->")
    for words in ("evaluate", "worker dead-letters list", "quality", "judge bench", "collect"):
        assert f"## ragaliq {words}\n" in page
