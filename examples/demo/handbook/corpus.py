"""The handbook as chunks: one per section of each document."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from handbook.errors import DemoError

__all__ = ["CORPUS", "Chunk", "load_chunks"]

CORPUS = Path(__file__).resolve().parent.parent / "corpus"


@dataclass(frozen=True)
class Chunk:
    """One section of a document.

    Attributes:
        id: `document/section`, unique in the corpus.
        document: File name without its ending.
        text: The document's title, the section's heading and its text: a section alone, such as
            "Costs", would not say what it is about.
    """

    id: str
    document: str
    text: str


def load_chunks(folder: Path = CORPUS) -> list[Chunk]:
    """Read every document of the folder, in the order of file names.

    Raises:
        DemoError: There is no document, or one has no sections.
    """
    chunks = [chunk for path in sorted(folder.glob("*.md")) for chunk in _sections(path)]
    if not chunks:
        raise DemoError(f"no documents (*.md) in {folder}")
    return chunks


def _sections(path: Path) -> list[Chunk]:
    head, *sections = re.split(r"^## +", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if not sections:
        raise DemoError(f"{path.name} has no section: a line that starts with '## ' is missing")
    title = head.removeprefix("# ").strip()
    return [_chunk(path.stem, title, section) for section in sections]


def _chunk(document: str, title: str, section: str) -> Chunk:
    heading, _, text = section.partition("\n")
    slug = re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")
    return Chunk(f"{document}/{slug}", document, f"{title}: {heading.strip()}\n{text.strip()}")
