"""Looking at the files a command is to write before it spends anything."""

from __future__ import annotations

import os
from pathlib import Path

from ragaliq.errors import ConfigurationError

__all__ = ["require_writable"]


def require_writable(path: Path | None, *, option: str, read: tuple[Path | None, ...]) -> None:
    """Refuse a file that cannot be written, or that would replace what the command reads.

    Labels are a person's work and verdicts may have cost money: neither may be lost at the end.

    Args:
        path: The file to write; None for none.
        option: What it was named with.
        read: The files the command reads.

    Raises:
        ConfigurationError: It is one of these files, a folder, or in no folder that can be written.
    """
    if path is None:
        return
    if any(path.exists() and other and other.exists() and path.samefile(other) for other in read):
        raise ConfigurationError(f"{option} {path} would replace a file that is read; name another")
    if path.is_dir():
        raise ConfigurationError(f"{option} {path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise ConfigurationError(f"{option} {path}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ConfigurationError(f"{option} {path} cannot be written")
