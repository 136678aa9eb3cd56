"""What to do after an interruption: what is kept where, and how to go on."""

from __future__ import annotations

from pathlib import Path

from ragaliq.cli.console import errors, plain

__all__ = ["say_what_is_left"]


def say_what_is_left(judged: int, total: int, kept_in: Path | None, *, option: str) -> None:
    """Say how far the work got.

    Args:
        judged: What was done, in earlier runs too.
        total: What there was to do.
        kept_in: The file that holds what was judged; None where none was asked for.
        option: With what option a further run goes on, or, without a file, would have.
    """
    left = f"{total - judged:,} of {total:,} are left"
    if kept_in is None:
        errors.print(plain(f"{left}; nothing is kept: with {option} a further run could go on"))
    else:
        errors.print(
            plain(f"{left}; what was judged is kept in {kept_in}: go on by the same with {option}")
        )
