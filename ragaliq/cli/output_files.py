"""Looking at the files a command is to write before it spends anything."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ragaliq.errors import ConfigurationError

__all__ = ["Named", "is_same_file", "require_writable"]

Named = tuple[str, Path | str | None]
"""What the user knows a file as (`--out`, `the labels`), and the file; None where none is named."""


def require_writable(writes: Sequence[Named], *, read: Sequence[Named]) -> None:
    """Refuse files that cannot be written, or that would replace what is read or written already.

    Data sets and labels are a person's work and verdicts may have cost money: neither may be lost
    at the end.

    Args:
        writes: The command's outputs; also those that are only added to, whose own check comes
            when they are opened.
        read: Its inputs.

    Raises:
        ConfigurationError: One is another of these files, by whatever path or link, a folder, or
            in no folder that can be written.
    """
    taken = list(read)
    for name, path in [(name, Path(path)) for name, path in writes if path is not None]:
        for other, held in taken:
            if held is not None and is_same_file(path, Path(held)):
                raise ConfigurationError(f"{name} {path} would replace {other}; name another file")
        _require_place(name, path)
        taken.append((name, path))


def _require_place(name: str, path: Path) -> None:
    if os.path.isdir(path):  # noqa: PTH112 - unlike Path's, it takes any path
        raise ConfigurationError(f"{name} {path} is a folder; name a file in it")
    if not os.path.isdir(path.parent):  # noqa: PTH112
        raise ConfigurationError(f"{name} {path}: there is no folder {path.parent}")
    if not os.access(path if os.path.exists(path) else path.parent, os.W_OK):  # noqa: PTH110
        raise ConfigurationError(f"{name} {path} cannot be written")


def is_same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, which need not be there yet."""
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        # At least one of them is not there; a path that cannot be one is refused by who opens it.
        pass
    try:
        return one.resolve() == other.resolve()
    except (OSError, RuntimeError, ValueError):  # links that lead to each other
        return False
