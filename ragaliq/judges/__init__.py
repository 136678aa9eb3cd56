"""Who decides: Claude, the embedded local judge, or a judge of your own.

Judges that need an SDK are loaded on first access, so that importing this package stays cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ragaliq.judges.base import (
    BatchingJudge,
    ClaimsResult,
    ClaimVerdict,
    GradedStatements,
    JudgeResult,
    LLMJudge,
    NumberedVerdict,
    StatementVerdict,
    VerdictsResult,
)

if TYPE_CHECKING:
    from ragaliq.judges.claude import DEFAULT_JUDGE_MODEL, ClaudeJudge
    from ragaliq.judges.local import LocalJudge

__all__ = [
    "DEFAULT_JUDGE_MODEL",
    "BatchingJudge",
    "ClaimVerdict",
    "ClaimsResult",
    "ClaudeJudge",
    "GradedStatements",
    "JudgeResult",
    "LLMJudge",
    "LocalJudge",
    "NumberedVerdict",
    "StatementVerdict",
    "VerdictsResult",
]

_LAZY = {
    "DEFAULT_JUDGE_MODEL": "ragaliq.judges.claude",
    "ClaudeJudge": "ragaliq.judges.claude",
    "LocalJudge": "ragaliq.judges.local",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
