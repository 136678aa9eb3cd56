"""Claude through the Message Batches API, at half price. Loading this package loads the SDK."""

from ragaliq.judges.claude_batch.judge import ClaudeBatchJudge

__all__ = ["ClaudeBatchJudge"]
