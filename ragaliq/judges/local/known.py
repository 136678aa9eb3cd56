"""What was found out about words, kept for the next time they occur."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["KnownWords"]

_MOST = 32_768  # words; about 8 MB
_LONGEST = 40  # characters; longer ones hardly come again
Value = TypeVar("Value")


class KnownWords(dict[str, Value]):
    """Word -> what a function makes of it; worked out when first asked for.

    For `map(known.__getitem__, words)`, the fastest way to ask for many: every word of every chunk
    goes through here. Full, it begins anew, so that its size is bounded.

    Args:
        read: What to do with a new word; always the same for the same word.
    """

    def __init__(self, read: Callable[[str], Value]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, word: str) -> Value:
        value = self._read(word)
        if len(word) <= _LONGEST:
            if len(self) >= _MOST:
                self.clear()
            self[word] = value
        return value
