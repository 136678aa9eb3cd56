"""The judges: Claude, the embedded judge, a model on your server, or your own class.

Judges that need an SDK are loaded on first access, so that importing this package stays cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ragaliq.judges.base import (
    BatchingJudge,
    ClaimsResult,
    ClaimVerdict,
    JudgeResult,
    LLMJudge,
    VerdictsResult,
)

if TYPE_CHECKING:
    from ragaliq.judges.cascade import CascadeJudge, StageAgreement
    from ragaliq.judges.chat_model import ChatModelJudge, ModelReply
    from ragaliq.judges.claude import DEFAULT_JUDGE_MODEL, ClaudeJudge
    from ragaliq.judges.local import LocalJudge
    from ragaliq.judges.openai_compatible import OpenAICompatibleJudge
    from ragaliq.judges.parsing import parse_json_reply, parse_verdicts

__all__ = [
    "DEFAULT_JUDGE_MODEL",
    "BatchingJudge",
    "CascadeJudge",
    "ChatModelJudge",
    "ClaimVerdict",
    "ClaimsResult",
    "ClaudeJudge",
    "JudgeResult",
    "LLMJudge",
    "LocalJudge",
    "ModelReply",
    "OpenAICompatibleJudge",
    "StageAgreement",
    "VerdictsResult",
    "parse_json_reply",
    "parse_verdicts",
]

_LAZY = {
    "DEFAULT_JUDGE_MODEL": "ragaliq.judges.claude",
    "CascadeJudge": "ragaliq.judges.cascade",
    "ChatModelJudge": "ragaliq.judges.chat_model",
    "ClaudeJudge": "ragaliq.judges.claude",
    "LocalJudge": "ragaliq.judges.local",
    "ModelReply": "ragaliq.judges.chat_model",
    "OpenAICompatibleJudge": "ragaliq.judges.openai_compatible",
    "StageAgreement": "ragaliq.judges.cascade",
    "parse_json_reply": "ragaliq.judges.parsing",
    "parse_verdicts": "ragaliq.judges.parsing",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
