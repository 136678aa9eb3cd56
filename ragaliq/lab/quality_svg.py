"""Quality week by week as an SVG picture that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from xml.sax.saxutils import escape

from ragaliq.lab.quality import QualitySeries
from ragaliq.statistics import Estimate

_LEFT, _WIDE, _HIGH, _PANEL = 56, 520, 150, 226
_WIDTH = _LEFT + _WIDE + 24
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.title{font-weight:600}.soft{fill:#666}"
    ".grid{stroke:#ddd}.alone{fill:none;stroke:#888;stroke-width:1.5}.today{stroke-dasharray:4 3}"
    ".people{stroke:#0b5fa5;stroke-width:2}.dot{fill:#0b5fa5}.event{stroke:#b02a1f}"
    ".note{fill:#b02a1f;font-size:11px}.band{fill:#8883;stroke:none}"
    "@media(prefers-color-scheme:dark){text{fill:#eee}.soft{fill:#aaa}.grid{stroke:#444}"
    ".people{stroke:#7fb2e5}.dot{fill:#7fb2e5}.note{fill:#ff9a8d}.event{stroke:#ff9a8d}}"
)
_MEANING = (
    "dots: as your reviewers would judge it, 95 % intervals",
    "grey: the judge alone, 95 % intervals; dashed: by today's judge",
)


def quality_svg(series: Sequence[QualitySeries]) -> str:
    """Draw each series in a panel: reviewers, the judge alone, changes of the judge, alarms."""
    height = _PANEL * len(series) + 44
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    label = escape("; ".join(_MEANING))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} aria-label="{label}">',
        f"<style>{_STYLE}</style>",
    ]
    for number, each in enumerate(series):
        parts += _panel(each, 16 + number * _PANEL)
    for line, words in enumerate(_MEANING):  # one line would be wider than the picture
        y = height - 24 + 16 * line
        parts.append(f'<text class="soft" x="8" y="{y}">{escape(words)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(series: QualitySeries, top: int) -> list[str]:
    starts = [week.start or 0.0 for week in series.weeks]
    week = 7 * 86_400.0
    first, reach = starts[0], starts[-1] - starts[0] + week
    shown = [
        estimate
        for each in series.weeks
        for estimate in (each.judge_alone, each.joined, each.people)
        if estimate is not None
    ]
    floor = min(0.9, max(0.0, min(estimate.low for estimate in shown) - 0.02))

    def x(time: float) -> float:
        return _LEFT + _WIDE * (time - first) / reach

    def y(value: float) -> float:
        return top + 24 + _HIGH * (1.0 - (value - floor) / (1.0 - floor))

    parts = [f'<text class="title" x="{_LEFT}" y="{top + 8}">{escape(series.title)}</text>']
    for part in range(5):
        value = floor + (1.0 - floor) * part / 4
        at = f'y1="{y(value):.1f}" y2="{y(value):.1f}"'
        parts += [
            f'<line class="grid" x1="{_LEFT}" x2="{_LEFT + _WIDE}" {at}/>',
            f'<text class="soft" x="8" y="{y(value) + 4:.1f}">{value:.2f}</text>',
        ]
    middles = [x(start + week / 2) for start in starts]
    parts += _band(middles, [each.judge_alone for each in series.weeks], y)
    parts += _line(middles, [each.judge_alone for each in series.weeks], y, "alone")
    if series.judge_changes:
        parts += _line(middles, [each.joined for each in series.weeks], y, "alone today")
    for middle, each in zip(middles, series.weeks, strict=True):
        day = datetime.fromtimestamp(each.start or 0.0, UTC)
        parts.append(
            f'<text class="soft" x="{middle:.1f}" y="{top + _HIGH + 42}" text-anchor="middle">'
            f"{day.day} {day:%b}</text>"
        )
        if (people := each.people) is not None:
            ends = f'y1="{y(people.low):.1f}" y2="{y(people.high):.1f}"'
            parts += [
                f'<line class="people" x1="{middle:.1f}" x2="{middle:.1f}" {ends}/>',
                f'<circle class="dot" r="4" cx="{middle:.1f}" cy="{y(people.value):.1f}"/>',
            ]
    events = [(change.time, "judge changed") for change in series.judge_changes]
    events += [(alarm.time, f"alarm: {alarm.shift.direction}") for alarm in series.alarms]
    for time, words in events:
        ends = f'y1="{top + 24}" y2="{top + 24 + _HIGH}"'
        parts += [
            f'<line class="event" x1="{x(time):.1f}" x2="{x(time):.1f}" {ends}/>',
            f'<text class="note" x="{x(time) + 4:.1f}" y="{top + 20}">{words}</text>',
        ]
    return parts


def _line(
    middles: Sequence[float],
    estimates: Sequence[Estimate | None],
    y: Callable[[float], float],
    kind: str,
) -> list[str]:
    points = " ".join(
        f"{middle:.1f},{y(estimate.value):.1f}"
        for middle, estimate in zip(middles, estimates, strict=True)
        if estimate is not None
    )
    return [f'<polyline class="{kind}" points="{points}"/>']


def _band(
    middles: Sequence[float], estimates: Sequence[Estimate], y: Callable[[float], float]
) -> list[str]:
    upper = [f"{m:.1f},{y(e.high):.1f}" for m, e in zip(middles, estimates, strict=True)]
    lower = [f"{m:.1f},{y(e.low):.1f}" for m, e in zip(middles, estimates, strict=True)]
    return [f'<polygon class="band" points="{" ".join([*upper, *reversed(lower)])}"/>']
