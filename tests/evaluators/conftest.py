from unittest.mock import AsyncMock, MagicMock

import pytest

from ragaliq.judges import ClaimsResult, ClaimVerdict, JudgeResult, LLMJudge


@pytest.fixture
def mock_judge():
    """The documents' own test double (document 000, section 6)."""
    judge = MagicMock(spec=LLMJudge)
    judge.extract_claims = AsyncMock(return_value=ClaimsResult(claims=[], tokens_used=10))
    judge.verify_claim = AsyncMock()
    judge.evaluate_relevance = AsyncMock(
        return_value=JudgeResult(score=0.85, reasoning="It answers the question.", tokens_used=42)
    )
    return judge


@pytest.fixture
def judge_of(mock_judge):
    """The double with claims of these verdicts."""

    def script(*verdicts, tokens=0):
        claims = [f"Claim {i}" for i in range(len(verdicts))]
        mock_judge.extract_claims.return_value = ClaimsResult(claims=claims, tokens_used=tokens)
        mock_judge.verify_claim.side_effect = [
            verdict
            if isinstance(verdict, ClaimVerdict)
            else ClaimVerdict(verdict=verdict, evidence=f"Evidence {i}", tokens_used=tokens)
            for i, verdict in enumerate(verdicts)
        ]
        return mock_judge

    return script
