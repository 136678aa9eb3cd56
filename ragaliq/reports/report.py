"""HTML report that needs no network, from a store, a results file, or records.

A content security policy allows its script and style sheet by their hashes and forbids loading
anything. So even text that escaped the escaping could do nothing.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from ragaliq._version import __version__
from ragaliq.core.files import replace_file
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.records.reading import Source, records_of
from ragaliq.records.store import Moment
from ragaliq.reports.contents import contents_of
from ragaliq.reports.gathering import Gathering

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

_MOST_ROWS = 20_000
_SCRIPTS = ("dom", "state", "charts", "listing", "answer", "start")


@dataclass(frozen=True, kw_only=True)
class ReportSummary:
    """Size and content of a written report.

    Attributes:
        path: Path of the page.
        answers: Answers that its figures are based on.
        evaluations: Evaluations of them; more if answers were evaluated several times.
        listed: Evaluations that it lists, the worst first.
        in_full: Evaluations that it shows with their texts and claims.
        bytes: Size of the page.
    """

    path: Path
    answers: int
    evaluations: int
    listed: int
    in_full: int
    bytes: int


def write_report(
    source: Source,
    path: str | os.PathLike[str],
    *,
    title: str = "RAG answer quality",
    since: Moment | None = None,
    until: Moment | None = None,
    pipeline: str | None = None,
    worst: int = 300,
    source_name: str | None = None,
    trace_url: str | None = None,
    quality: Sequence[object] = (),
) -> ReportSummary:
    """Write a self-contained HTML page that loads nothing.

    Figures and charts cover all answers. The `worst` answers by each metric in turn are shown in
    full; up to 20,000 are listed by their scores. The page says what it omits.

    Args:
        source: `sqlite:///path`, the path of a store or of a results file, or records. They are
            read once and not kept.
        path: Path of the page; overwritten if it exists.
        title: Its heading.
        since: Answers evaluated then or later: Unix time, or a datetime with a zone.
        until: Answers evaluated before then.
        pipeline: Answers of this pipeline only.
        worst: Most answers shown in full; their size is limited too.
        source_name: Name of the source on the page; by default the file's name.
        trace_url: Address of a trace in your backend, with `{trace_id}` in it: each answer that has
            a trace links to it.
        quality: Figures of `ragaliq.lab.quality.stored_quality`, for a table of the weeks.

    Raises:
        ConfigurationError: A setting is out of range, or jinja2 is not installed.
        DatasetError: The source cannot be read or holds no such answers, or the page cannot be
            written.
    """
    if worst < 0:
        raise ConfigurationError(f"worst must not be negative, got {worst}")
    # Another scheme, such as javascript:, would run on a click.
    if trace_url and not (
        trace_url.startswith(("https://", "http://")) and "{trace_id}" in trace_url
    ):
        raise ConfigurationError(
            f"the address of traces, {trace_url!r}, must begin with https:// or http:// and hold "
            "{trace_id}"
        )
    target = Path(path)
    if not target.name:  # such as "." or "/"
        raise ConfigurationError(f"{str(target)!r} is a folder; name the file of the page")
    name = _name_of(source) if source_name is None else source_name
    gathered = Gathering(in_full=worst, in_rows=_MOST_ROWS)
    for record in records_of(source, since=since, until=until, pipeline=pipeline):
        gathered.add(record)
    if not gathered.summary.records:
        is_narrowed = any(each is not None for each in (since, until, pipeline))
        where = " within the time and pipeline asked" if is_narrowed else ""
        raise DatasetError(f"{name} holds no results{where}")
    contents = contents_of(gathered, trace_url=trace_url)
    page = template("report.html.j2", style=page_file("report.css"), script=_script()).render(
        data=_trusted(contents.data),  # JSON in which nothing can end the element
        title=title,
        source=name,
        version=__version__,
        gathered=gathered,
        summary=gathered.summary,
        contents=contents,
        trace_url=trace_url,
        quality=quality,
        **contents.figures,
    )
    size = replace_file(target, page)
    return ReportSummary(
        path=target,
        answers=gathered.summary.cases,
        evaluations=gathered.summary.records,
        listed=contents.in_rows,
        in_full=contents.in_full,
        bytes=size,
    )


def _name_of(source: Source) -> str:
    """Name of the source on the page: the file's name, without its folders."""
    if not isinstance(source, (str, os.PathLike)):
        return "records"
    address = os.fspath(source)
    if address.startswith("sqlite:"):
        address = address.partition("?")[0]
    return Path(address).name


# --- the page ---------------------------------------------------------------------------------


def content_security_policy(*, style: str, script: str) -> str:
    """Content security policy that allows this style sheet and script, and no loading."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _script() -> str:
    """Scripts in one scope: they share their names with each other and with nothing else."""
    parts = "\n".join(page_file(f"{name}.js") for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}}})();\n'


@cache
def page_file(name: str) -> str:
    """Text of a file that pages are made of."""
    return (files("ragaliq.reports") / "page" / name).read_text(encoding="utf-8")


def template(name: str, *, style: str, script: str = "") -> Template:
    """Template of a page, with its style sheet, its script and the policy that allows them."""
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
    environment.filters |= {"moment": _moment, "count": "{:,}".format, "dollars": _dollars}
    environment.globals |= {
        "policy": content_security_policy(style=style, script=script),
        "style": _trusted(style),
        "script": _trusted(script),
    }
    return environment.get_template(name)


def _trusted(text: str) -> Markup:
    """Mark our own text as safe; jinja2 escapes everything else."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 or amount == 0 else f"${amount:.4f}"
