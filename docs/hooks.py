"""While the site is built: writes every command's help into `cli.md`, and checks the pages.

They must work from disk, so none may fetch a script, a style, a font or a picture.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from mkdocs.exceptions import PluginError
from typer.testing import CliRunner

from ragaliq.cli.app import app

PLACE = "<!-- commands -->"
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?https?:
    |<link[^>]*rel=["']?(?:stylesheet|preload|preconnect)[^>]*https?:
    |url\(["']?https?:|@import""",
    re.VERBOSE,
)


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Words of each command, groups of commands and the annexes' included."""
    if words:
        yield words
    context = typer.Context(command)
    for word in getattr(command, "list_commands", lambda _: [])(context):
        yield from commands(command.get_command(context, word), (*words, word))


def section(words: tuple[str, ...]) -> str:
    """Help of a command under a heading."""
    shown = CliRunner().invoke(app, [*words, "--help"], prog_name="ragaliq", env={"COLUMNS": "100"})
    return f"## ragaliq {' '.join(words)}\n\n```text\n{shown.stdout.strip()}\n```"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Write the commands into the text of their page; mkdocs calls it for each page."""
    if PLACE not in markdown:
        return markdown
    found = commands(typer.main.get_command(app))
    return markdown.replace(PLACE, "\n\n".join(section(words) for words in found))


def on_post_build(config: Any, **_: Any) -> None:
    """Refuse a written site that loads anything from elsewhere.

    Raises:
        PluginError: A page fetches something from elsewhere.
    """
    site = Path(config.site_dir)
    for page in (*site.rglob("*.html"), *site.rglob("*.css")):
        if found := FETCHED.search(page.read_text(encoding="utf-8")):
            raise PluginError(f"{page} fetches something from elsewhere: {found[0]}")
