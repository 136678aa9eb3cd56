"""The page: a template, a style sheet and scripts, and a policy under which nothing else can run.

The script and the style sheet are allowed by their hashes; there is no source from which anything
could be loaded. So even text that found its way past the escaping could do nothing.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from ragaliq._version import __version__
from ragaliq.errors import ConfigurationError
from ragaliq.reports.contents import Contents
from ragaliq.reports.gathering import Gathering

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["content_security_policy", "render"]

_SCRIPTS = ("dom", "state", "charts", "listing", "answer", "start")


def render(gathered: Gathering, contents: Contents, *, title: str, source: str) -> str:
    """The page as text.

    Raises:
        ConfigurationError: jinja2 is not installed.
    """
    environment = _environment()
    from markupsafe import Markup

    style, script = _file("report.css"), _script()
    return environment.get_template("report.html.j2").render(
        policy=content_security_policy(style=style, script=script),
        # Ours, and JSON in which nothing can end the element: all else is escaped by jinja2.
        style=Markup(style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        data=Markup(contents.data),  # noqa: S704
        title=title,
        source=source,
        version=__version__,
        gathered=gathered,
        contents=contents,
        **contents.figures,
    )


def content_security_policy(*, style: str, script: str) -> str:
    """A policy that lets this style sheet and this script run, and nothing load."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _script() -> str:
    """The scripts as one: they share their names with each other and with nothing else."""
    parts = "\n".join(_file(f"{name}.js") for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}}})();\n'


@cache
def _file(name: str) -> str:
    return (files("ragaliq.reports") / "page" / name).read_text(encoding="utf-8")


def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ModuleNotFoundError:
        raise ConfigurationError(
            "a report needs jinja2, which is not installed: pip install 'ragaliq[cli]'"
        ) from None
    environment = Environment(
        loader=PackageLoader("ragaliq.reports", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"moment": _moment, "count": _count, "dollars": _dollars}
    return environment


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def _count(number: int) -> str:
    return f"{number:,}"


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 or amount == 0 else f"${amount:.4f}"
