"""JSON that can stand in a page without ending its script element."""

from __future__ import annotations

import json
import math
from typing import Any

__all__ = ["embedded_json", "finite"]

# `<` could begin `</script>` or `<!--`; the others are for whoever reads the page as XML, and for
# engines that take the two separators for ends of lines.
_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


def finite(value: float | None) -> float | None:
    """`value`, or None where JSON has no way to write it."""
    return value if value is not None and math.isfinite(value) else None


def embedded_json(value: Any) -> str:
    """`value` as JSON in which `<`, `>`, `&`, U+2028 and U+2029 are escaped.

    Raises:
        ValueError: A number is NaN or infinite, which JSON cannot hold.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_ESCAPES)
