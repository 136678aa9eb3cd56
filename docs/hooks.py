"""Writes the help of every command into the page `cli.md` while the site is built."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from typer.testing import CliRunner

from ragaliq.cli.app import app

PLACE = "<!-- commands -->"


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of each command, groups of commands included."""
    if words:
        yield words
    for word, each in getattr(command, "commands", {}).items():
        yield from commands(each, (*words, word))


def section(words: tuple[str, ...]) -> str:
    """What `ragaliq WORDS --help` prints, under a heading."""
    shown = CliRunner().invoke(app, [*words, "--help"], prog_name="ragaliq", env={"COLUMNS": "100"})
    return f"## ragaliq {' '.join(words)}\n\n```text\n{shown.stdout.strip()}\n```"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """What mkdocs calls with the text of each page."""
    if PLACE not in markdown:
        return markdown
    found = commands(typer.main.get_command(app))
    return markdown.replace(PLACE, "\n\n".join(section(words) for words in found))
