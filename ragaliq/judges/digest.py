"""Short names for what a judge consists of."""

from __future__ import annotations

from hashlib import blake2b

__all__ = ["digest_of", "long_digest_of"]


def digest_of(*parts: str | bytes) -> str:
    """Sixteen hex digits that depend on nothing but the parts and their order."""
    digest = blake2b(digest_size=8, person=b"ragaliq-judge")
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        # With lengths in between, ("ab", "c") and ("a", "bc") differ.
        digest.update(len(encoded).to_bytes(8) + encoded)
    return digest.hexdigest()


def long_digest_of(text: str) -> str:
    """Forty hex digits: long enough that no two requests of anybody's share them by chance."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
