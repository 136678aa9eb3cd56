"""What the embedded judge's verdicts rest on, as one short name."""

from __future__ import annotations

from functools import cache
from importlib import resources

from ragaliq.judges.digest import digest_of
from ragaliq.judges.local.parameters import FOLDER, MODEL_FILE, WORDS_FILE
from ragaliq.judges.local.verification import Verifier

__all__ = ["local_fingerprint"]

_CONTEXT = (
    "The museum opened in May 1987 and has 3,200 paintings. Entry is free on Sundays.",
    "Ada Keller designed the north wing. It has no workshop and never had one.",
)
_CLAIMS = (
    "The museum opened in 1987.",
    "The museum has 4,100 paintings.",
    "Entry is always free.",
    "The north wing was designed by Ada Keller, an architect from Graz.",
    "The north wing has a workshop.",
    "Visitors may bring dogs.",
)


@cache
def local_fingerprint() -> str:
    """A hash of the parameters, and of what comes out for a few claims.

    The parameters alone would not do: a change to how words are read changes the scores too.
    """
    folder = resources.files(__package__) / FOLDER
    verifier = Verifier(_CONTEXT)
    decided = (verifier.decide(claim) for claim in _CLAIMS)
    return digest_of(
        *((folder / name).read_bytes() for name in (MODEL_FILE, WORDS_FILE)),
        *(f"{decision.verdict} {decision.confidence:.3f}" for decision in decided),
    )
