import pytest

from ragaliq.judges import ClaimVerdict, VerdictsResult, parse_verdicts
from ragaliq.testing import ScriptedJudge

LETTERS = {"SUPPORTED": "S", "CONTRADICTED": "C", "NOT_ENOUGH_INFO": "N"}


@pytest.fixture
def verdicts():
    """`"0S 2N"` for a reply that supports the first statement and omits the second."""

    def read(reply: str, expected: int) -> str:
        found = parse_verdicts(reply, expected)
        return " ".join(f"{item.index}{LETTERS[item.verdict]}" for item in found)

    return read


class ReplyJudge(ScriptedJudge):
    """A judge without schemas: says what the test wants and is read by `parse_verdicts`."""

    def __init__(self, reply: str, claims: int) -> None:
        super().__init__(claims=[f"Claim {number}." for number in range(claims)])
        self.reply = reply

    async def verify_claims(self, claims, context):
        fields = {"index", "verdict", "reason", "evidence", "confidence"}
        found = parse_verdicts(self.reply, len(claims))
        return VerdictsResult(
            verdicts=[ClaimVerdict(**item.model_dump(include=fields)) for item in found]
        )


@pytest.fixture
def reply_judge():
    return ReplyJudge
