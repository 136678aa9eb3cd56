"""Claude as the judge. Loading this package loads the SDK."""

from ragaliq.judges.claude.judge import DEFAULT_JUDGE_MODEL, ClaudeJudge

__all__ = ["DEFAULT_JUDGE_MODEL", "ClaudeJudge"]
