"""Any server that speaks the chat-completions protocol as the judge."""

from ragaliq.judges.openai_compatible.judge import OpenAICompatibleJudge

__all__ = ["OpenAICompatibleJudge"]
