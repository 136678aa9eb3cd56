"""A context in windows that fit into a model, so that nothing is cut off silently."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ragaliq.judges.language.sentences import split_sentences

__all__ = ["Window", "windows_of"]

CountTokens = Callable[[str], int]


class Window(NamedTuple):
    """Text that is read at once.

    Attributes:
        text: What the model sees.
        chunks: 0-based positions of the chunks it is from, in order.
    """

    text: str
    chunks: tuple[int, ...]


def windows_of(chunks: Sequence[str], count: CountTokens, *, budget: int) -> list[Window]:
    """Fill windows with consecutive sentences; a sentence that is too long is cut at a space.

    The last sentence of a window that more of the same chunk follows is repeated in the next one,
    since what is said there often goes on.

    Args:
        chunks: The texts.
        count: How many tokens a text has.
        budget: Tokens a window may have.
    """
    windows: list[Window] = []
    held: list[tuple[int, str, int]] = []
    size = 0
    for piece in _pieces(chunks, count, budget):
        if held and size + piece[2] > budget:
            windows.append(_window(held))
            last = held[-1]
            fits = last[0] == piece[0] and len(held) > 1 and last[2] + piece[2] <= budget
            held = [last] if fits else []
            size = sum(tokens for _, _, tokens in held)
        held.append(piece)
        size += piece[2]
    if held:
        windows.append(_window(held))
    return windows


def _pieces(
    chunks: Sequence[str], count: CountTokens, budget: int
) -> Iterator[tuple[int, str, int]]:
    for position, chunk in enumerate(chunks):
        for start, end in split_sentences(chunk):
            for part in _fitting(chunk[start:end], count, budget):
                # One more, since two sentences together may have a token more than apart.
                yield position, part, count(part) + 1


def _fitting(text: str, count: CountTokens, budget: int) -> Iterator[str]:
    """The text in parts of at most `budget` tokens, halved until they fit."""
    if count(text) < budget or len(text) < 2:
        yield text
        return
    middle = text.rfind(" ", 1, len(text) // 2 + 1)
    cut = middle if middle > 0 else len(text) // 2
    for part in (text[:cut], text[cut:]):
        if part.strip():
            yield from _fitting(part.strip(), count, budget)


def _window(held: Sequence[tuple[int, str, int]]) -> Window:
    return Window(
        " ".join(text for _, text, _ in held), tuple(dict.fromkeys(chunk for chunk, _, _ in held))
    )
