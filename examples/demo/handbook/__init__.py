"""What the demos share: documents, questions, embedding, playback and the terminal output."""

from __future__ import annotations
