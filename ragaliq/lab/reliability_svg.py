"""The reliability diagram of a judge, as an SVG file that needs nothing else.

After DeGroot & Fienberg 1983, The Statistician 32: confidence across, share of supported claims up;
a calibrated judge is on the diagonal. The bars at the bottom say how many claims a bin holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from ragaliq.lab.curves import ReliabilityBin
from ragaliq.statistics import wilson

_SIDE, _LEFT, _TOP, _BARS = 320, 56, 48, 40
_TITLE = 54  # characters
_WIDTH, _HEIGHT = _LEFT + _SIDE + 24, _TOP + _SIDE + _BARS + 64
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.title{font-weight:600}.soft{fill:#666}"
    ".grid{stroke:#ddd}.line{stroke:#999;stroke-dasharray:4 4}.curve{fill:none;stroke:#0b5fa5;"
    "stroke-width:2}.dot{fill:#0b5fa5}.whisker{stroke:#0b5fa5}.bar{fill:#9bbfdd}"
    "@media(prefers-color-scheme:dark){text{fill:#eee}.soft{fill:#aaa}.grid{stroke:#444}}"
)


def reliability_svg(bins: Sequence[ReliabilityBin], *, title: str, ece: float) -> str:
    """Draw the bins of `reliability_table`; `title` is any text and is escaped."""
    listed = "; ".join(
        f"confidence {row.confidence:.2f}: {row.share:.2f} supported of {row.n}" for row in bins
    )
    # What fits above the plot; the whole title is the picture's.
    short = title if len(title) <= _TITLE else title[: _TITLE - 1] + "…"
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    curve = " ".join(f"{_x(row.confidence):.1f},{_y(row.share):.1f}" for row in bins)
    most = max((row.n for row in bins), default=1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} aria-labelledby="t d">',
        f'<title id="t">Reliability of {escape(title)}</title><desc id="d">{listed}</desc>',
        f"<style>{_STYLE}</style>",
        f'<text class="title" x="{_LEFT}" y="20">{escape(short)}</text>',
        f'<text class="soft" x="{_LEFT}" y="38">expected calibration error {ece:.3f}</text>',
    ]
    for at in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        x, y = _x(at), _y(at)
        parts += [
            f'<line class="grid" x1="{_x(0)}" y1="{y:.0f}" x2="{_x(1)}" y2="{y:.0f}"/>',
            f'<text class="soft" x="{_LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{at}</text>',
            f'<text class="soft" x="{x:.0f}" y="{_HEIGHT - 28}" text-anchor="middle">{at}</text>',
        ]
    across, up = "support the judge gives", "share that is supported"
    turned = f"translate(14 {_TOP + _SIDE / 2}) rotate(-90)"
    parts += [
        f'<text x="{_x(0.5)}" y="{_HEIGHT - 8}" text-anchor="middle">{across}</text>',
        f'<text transform="{turned}" text-anchor="middle">{up}</text>',
        f'<line class="line" x1="{_x(0)}" y1="{_y(0)}" x2="{_x(1)}" y2="{_y(1)}"/>',
        f'<polyline class="curve" points="{curve}"/>',
    ]
    for row in bins:
        x, y, height = _x(row.confidence), _y(row.share), _BARS * row.n / most
        top = _TOP + _SIDE + _BARS + 8 - height
        low, high = wilson(row.share, n=row.n)
        bar = f'x="{x - 6:.1f}" y="{top:.1f}" width="12" height="{height:.1f}"'
        ends = f'x1="{x:.1f}" x2="{x:.1f}" y1="{_y(low):.1f}" y2="{_y(high):.1f}"'
        parts += [
            f'<rect class="bar" {bar}><title>{row.n} claims</title></rect>',
            f'<line class="whisker" {ends}/>',
            f'<circle class="dot" r="4" cx="{x:.1f}" cy="{y:.1f}"/>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _x(value: float) -> float:
    return _LEFT + value * _SIDE


def _y(value: float) -> float:
    return _TOP + (1.0 - value) * _SIDE
