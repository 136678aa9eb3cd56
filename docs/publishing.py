"""Puts the repository's public address where a package index shows it.

python docs/publishing.py https://HOST/OWNER/REPOSITORY FOLDER

In an exported tree, each project gets its `[project.urls]`, and the links and pictures of its
README become absolute. The sources do not name the address: only those who publish them know it.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ANCHOR = "[tool.hatch.build.targets.wheel]"
PROJECTS = (".", "integrations/langchain", "integrations/llama-index")


def absolute(readme: str, repository: str, tag: str) -> str:
    """A README whose links lead to the repository's files, and whose pictures can be shown."""
    readme = re.sub(r"(!\[[^]]*\]\()(?!https?:|#)", rf"\1{repository}/raw/{tag}/", readme)
    return re.sub(r"((?<!!)\[[^]]*\]\()(?!https?:|#)", rf"\1{repository}/blob/{tag}/", readme)


def publish(repository: str, folder: Path) -> None:
    """Write the address into the projects of a tree."""
    for project in PROJECTS:
        table = folder / project / "pyproject.toml"
        text = table.read_text(encoding="utf-8")
        tag = f"v{tomllib.loads(text)['project']['version']}"
        urls = f"""[project.urls]
Documentation = "{repository}/blob/{tag}/docs/pages/index.md"
Repository = "{repository}"
Issues = "{repository}/issues"
Changelog = "{repository}/blob/{tag}/CHANGELOG.md"
Security = "{repository}/blob/{tag}/SECURITY.md"

{ANCHOR}"""
        table.write_text(text.replace(ANCHOR, urls), encoding="utf-8")
        readme = folder / project / "README.md"
        shown = absolute(readme.read_text(encoding="utf-8"), repository, tag)
        readme.write_text(shown, encoding="utf-8")


if __name__ == "__main__":
    publish(sys.argv[1].rstrip("/"), Path(sys.argv[2]))
