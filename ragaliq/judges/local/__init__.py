"""The embedded judge: decides by wording, offline and free."""

from ragaliq.judges.local.judge import LocalJudge

__all__ = ["LocalJudge"]
