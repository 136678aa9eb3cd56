"""A table in, the same table with scores and claims out: for engines that work batch by batch."""

from ragaliq.backfill.batch import score_batch, score_batch_schema

__all__ = ["score_batch", "score_batch_schema"]
