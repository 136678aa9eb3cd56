"""Shows what went to OpenTelemetry: names and counts, links, and one span as an example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from opentelemetry._logs import LogRecord
from opentelemetry.sdk.trace import ReadableSpan
from rich.console import Group
from rich.table import Table
from rich.text import Text

from handbook.errors import DemoError
from handbook.quotes import count_quotes
from handbook.safety import safe_text

__all__ = ["Collected", "emitted_strings", "emitted_view"]

EXAMPLE = "evaluation faithfulness"
LONGEST_VALUE = 100


@dataclass(frozen=True)
class Collected:
    """What ragaliq emitted."""

    spans: list[ReadableSpan] = field(default_factory=list)
    events: list[LogRecord] = field(default_factory=list)


def emitted_view(collected: Collected, private: Iterable[str]) -> Group:
    """Counts by name, an example span and the check for private text.

    Raises:
        DemoError: Nothing was emitted.
    """
    spans, events = len(collected.spans), len(collected.events)
    if not spans or not events:
        raise DemoError(f"telemetry is missing: {spans} spans and {events} events were emitted")
    links = sum(len(span.links) for span in collected.spans)
    return Group(
        _names(collected),
        Text(f"Links from evaluations to the application's own spans: {links}"),
        *_example(collected.spans),
        _privacy(collected, private),
    )


def emitted_strings(collected: Collected) -> Iterator[str]:
    """Every string of every span and event: names, attributes, descriptions, bodies."""
    for span in collected.spans:
        yield from _strings([span.name, span.status.description, dict(span.attributes or {})])
        for event in span.events:
            yield from _strings([event.name, dict(event.attributes or {})])
    for record in collected.events:
        yield from _strings([record.event_name, record.body, dict(record.attributes or {})])


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings([*value.keys(), *value.values()])
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from _strings(entry)


def _names(collected: Collected) -> Table:
    table = Table("signal", "name", header_style="bold")
    table.add_column("count", justify="right")
    signals = {
        "span": Counter(span.name for span in collected.spans),
        "event": Counter(record.event_name or "" for record in collected.events),
    }
    for signal, counts in signals.items():
        for name, count in sorted(counts.items()):
            table.add_row(Text(signal), safe_text(name), Text(str(count)))
    return table


def _example(spans: Iterable[ReadableSpan]) -> list[Text]:
    span = next((span for span in spans if span.name == EXAMPLE and _is_mixed(span)), None)
    if span is None:
        return []
    lines = [Text(f"One of the spans named {EXAMPLE!r}:", style="bold")]
    for name, value in sorted((span.attributes or {}).items()):
        lines.append(safe_text(f"  {name} = {_short(value)}"))
    return lines


def _is_mixed(span: ReadableSpan) -> bool:
    verdicts = (span.attributes or {}).get("ragaliq.claim.verdicts", ())
    return isinstance(verdicts, tuple) and len(set(verdicts)) > 1


def _short(value: object) -> str:
    shown = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return shown if len(shown) <= LONGEST_VALUE else f"{shown[: LONGEST_VALUE - 3]}..."


def _privacy(collected: Collected, private: Iterable[str]) -> Text:
    strings = list(emitted_strings(collected))
    quoting = count_quotes(strings, private)
    where = f"of {len(strings)} emitted strings quote a question, an answer or a document"
    if quoting == 0:
        return Text(f"Content: 0 {where}. Text leaves only where content capture is switched on.")
    return Text(f"Content: {quoting} {where}: content capture is switched on.", style="bold")
