from __future__ import annotations

import pytest

from ragaliq.judges import (
    BatchingJudge,
    ClaimsResult,
    ClaimVerdict,
    VerdictsResult,
    parse_verdicts,
)

LETTERS = {"SUPPORTED": "S", "CONTRADICTED": "C", "NOT_ENOUGH_INFO": "N"}


class ReplyJudge(BatchingJudge):
    """A judge without schemas: says what the test wants and is read by `parse_verdicts`."""

    def __init__(self, reply: str, claims: int) -> None:
        self.reply = reply
        self.claims = [f"Claim {number}." for number in range(claims)]

    async def extract_claims(self, response):
        return ClaimsResult(claims=self.claims)

    async def extract_statements(self, query, response):
        return ClaimsResult(claims=self.claims)

    async def verify_claims(self, claims, context):
        fields = {"verdict", "reason", "evidence", "confidence"}
        verdicts = [
            ClaimVerdict(index=item.index, **item.model_dump(include=fields))
            for item in parse_verdicts(self.reply, len(claims))
        ]
        return VerdictsResult(verdicts=verdicts)

    async def verify_claim(self, claim, context):
        raise NotImplementedError

    async def grade_statements(self, query, response, context):
        raise NotImplementedError

    async def evaluate_relevance(self, query, response):
        raise NotImplementedError


@pytest.fixture
def verdicts():
    """`"0S 2N"` for a reply that supports the first statement and omits the second."""

    def read(reply: str, expected: int) -> str:
        found = parse_verdicts(reply, expected)
        return " ".join(f"{item.index}{LETTERS[item.verdict]}" for item in found)

    return read


@pytest.fixture
def reply_judge():
    return ReplyJudge
