"""A judge that is an application itself: what it runs must be nobody's traffic."""

from __future__ import annotations

from ragaliq import ClaimsResult, ClaimVerdict, JudgeResult, LLMJudge


class AskingJudge(LLMJudge):
    """Awaits `ask()` whenever it is asked, and supports everything."""

    name = "asking"

    def __init__(self, ask):
        self._ask_once = ask
        self.asked = 0

    async def _ask(self):
        self.asked += 1
        await self._ask_once()

    async def extract_claims(self, response):
        await self._ask()
        return ClaimsResult(claims=[response], tokens_used=1)

    async def verify_claim(self, claim, context):
        await self._ask()
        return ClaimVerdict(verdict="SUPPORTED")

    async def evaluate_relevance(self, query, response):
        await self._ask()
        return JudgeResult(score=1.0, reasoning="", tokens_used=1)
