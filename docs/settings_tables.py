"""Writes the tables of docs/pages/settings.md from signatures and docstrings.

python docs/settings_tables.py
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import (
    BrokerExecutor,
    Budget,
    CircuitBreaker,
    Guard,
    Monitor,
    RateLimits,
    Sampling,
    ScoringPolicy,
    TelemetryOptions,
    WorkerSettings,
)

PAGE = Path(__file__).parent / "pages" / "settings.md"

DESCRIBED = {
    "monitor": Monitor,
    "telemetry": TelemetryOptions,
    "sampling": Sampling,
    "budget": Budget,
    "rate limits": RateLimits,
    "breaker": CircuitBreaker,
    "guard": Guard,
    "broker executor": BrokerExecutor,
    "worker": WorkerSettings,
    "handler": RagaliqCallbackHandler,
}

_SECTION = re.compile(r"^(?:Args|Attributes):\n((?: +.*\n|\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^    (\*{0,2}\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def meanings(described: type) -> dict[str, str]:
    """What the docstring says about each argument."""
    found: dict[str, str] = {}
    for section in _SECTION.findall(inspect.getdoc(described) + "\n"):
        for name, text in _ENTRY.findall(section):
            found.setdefault(name.lstrip("*"), " ".join(text.split()).replace("|", "\\|"))
    return found


def default(parameter: inspect.Parameter) -> str:
    """The default as it is written in code; empty where there is none."""
    value = parameter.default
    if value is inspect.Parameter.empty:
        return ""
    if isinstance(value, ScoringPolicy):
        return f"`ScoringPolicy.{value.name.upper()}`"
    if isinstance(value, CircuitBreaker):
        return "`CircuitBreaker()`"
    if repr(value) == "<factory>":
        return "`{}`"
    return f"`{value!r}`"


def table(described: type) -> str:
    """A row for each argument.

    Raises:
        ValueError: The docstring leaves one out.
    """
    rows = ["| argument | default | |", "|---|---|---|"]
    texts = meanings(described)
    for parameter in inspect.signature(described).parameters.values():
        if parameter.name not in texts:
            raise ValueError(f"{described.__name__} does not document {parameter.name}")
        rows.append(f"| `{parameter.name}` | {default(parameter)} | {texts[parameter.name]} |")
    return "\n".join(rows)


def written(page: str) -> str:
    """The page with its tables as they should be.

    Raises:
        ValueError: A table has no place on the page.
    """
    for name, described in DESCRIBED.items():
        place = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not place.search(page):
            raise ValueError(f"the page has no place for the table {name!r}")
        rows = table(described)
        page = place.sub(lambda match, rows=rows: f"{match[1]}\n{rows}\n\n{match[2]}", page)
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
