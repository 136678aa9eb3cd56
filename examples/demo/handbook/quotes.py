"""Looks for one set of texts inside another: did anything private leave the process?"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["count_quotes"]

RUN = 5
"""Words in a row that make a quotation; shorter runs also occur by chance."""


def count_quotes(strings: Iterable[str], private: Iterable[str]) -> int:
    """How many of `strings` share a run of words with one of the private texts."""
    known = {run for text in private for run in _runs(text)}
    return sum(not known.isdisjoint(_runs(text)) for text in strings)


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.casefold())
    return {tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1)}
