"""When a reply is needed no longer: the result it went into is where it is to be kept.

A judge whose replies survive a restart must not delete one as soon as it has been handed over:
a process killed a moment later would have to pay for it again. Whoever keeps results, such as a
results file, opens a block; the judge notes in it what it handed over, and is told when the result
is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

__all__ = ["Keeping", "current_keeping", "keeping"]


class Releaser(Protocol):
    """What replies come from; told on whichever thread the results are kept."""

    def release(self, keys: Sequence[str], /) -> None:
        """The results are kept: the replies may go."""

    def abandon(self, keys: Sequence[str], /) -> None:
        """There will be no results: the replies should stay for whoever asks again."""


class Keeping:
    """Replies in use for results that are not kept yet."""

    def __init__(self) -> None:
        self._used: dict[Releaser, list[str]] = {}

    def note(self, releaser: Releaser, key: str) -> None:
        """A reply was handed over."""
        self._used.setdefault(releaser, []).append(key)

    def kept(self) -> None:
        """The results are where they are to be kept."""
        self._tell(lambda releaser, keys: releaser.release(keys))

    def dropped(self) -> None:
        """There will be none."""
        self._tell(lambda releaser, keys: releaser.abandon(keys))

    def _tell(self, what: Callable[[Releaser, list[str]], None]) -> None:
        used, self._used = self._used, {}
        for releaser, keys in used.items():
            what(releaser, keys)


_CURRENT: ContextVar[Keeping | None] = ContextVar("ragaliq_keeping", default=None)


@contextmanager
def keeping(*, unless_kept: bool = False) -> Iterator[Keeping]:
    """Note the replies that are used inside, in tasks started there too.

    What is not `kept()` by the end of the block may still be, unless the block failed.

    Args:
        unless_kept: Where a block around this one keeps the results, leave it to that one; where
            there is none, they count as kept at the end of this one.
    """
    around = _CURRENT.get()
    if unless_kept and around is not None:
        yield around
        return
    block = Keeping()
    token = _CURRENT.set(block)
    try:
        yield block
    except BaseException:
        block.dropped()
        raise
    finally:
        _CURRENT.reset(token)
    if unless_kept:
        block.kept()


def current_keeping() -> Keeping | None:
    """The block, if any."""
    return _CURRENT.get()
