"""What an index shows: the repository's address in every project, and links that lead there."""

import importlib.util
import re
import shutil
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://example.org/shop/ragaliq"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    spec = importlib.util.spec_from_file_location("publishing", ROOT / "docs/publishing.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("published")
    for project in module.PROJECTS:
        (folder / project).mkdir(parents=True, exist_ok=True)
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / project / name, folder / project)
    module.publish(REPOSITORY, folder)
    return [folder / project for project in module.PROJECTS]


def test_every_project_has_its_addresses(published):
    for project in published:
        urls = tomllib.loads((project / "pyproject.toml").read_text())["project"]["urls"]
        assert urls["Repository"] == REPOSITORY
        assert all(url.startswith(REPOSITORY) for url in urls.values())


def test_pages_install_this_project_and_not_the_older_one_of_that_name():
    pages = [ROOT / "README.md", *ROOT.glob("docs/pages/**/*.md"), *ROOT.glob("examples/**/*.py")]
    installed = [
        name
        for page in pages
        for name in re.findall(r"pip install .*?['\" ](ragaliq\b[^'\" ]*)", page.read_text())
    ]
    assert len(installed) >= 10
    assert [name for name in installed if not name.endswith(">=1.0")] == []


def test_readmes_have_pictures_and_links_that_show_anywhere(published):
    links = re.findall(r"(!?)\[[^]]*\]\(([^)]+)\)", (published[0] / "README.md").read_text())
    assert {kind for kind, _ in links} == {"", "!"}
    for kind, link in links:
        assert link.startswith(f"{REPOSITORY}/{'raw' if kind else 'blob'}/v")
