"""Judges and claims to measure."""

from random import Random

from ragaliq import BatchingJudge, ClaimVerdict, JudgeError, JudgeUsage, LocalJudge
from ragaliq.datasets import LabelledClaim
from ragaliq.lab.judging import JudgedClaim


def claim(number, *, supported=True, verdict=None, group="", context=None):
    return LabelledClaim(
        id=f"c{number:04}",
        claim=f"Claim {number} says so.",
        context=(context or f"Context {number}.",),
        is_supported=supported,
        verdict=verdict or ("SUPPORTED" if supported else None),
        group=group,
    )


class ScriptedJudge(LocalJudge):
    """Answers claims from a table: a verdict with its confidence, or an error to raise."""

    name = "scripted"

    def __init__(self, answers, *, model=None, cost=0.0):
        self.answers, self.asked, self.model, self.cost = answers, [], model, cost

    def fingerprint(self):
        return BatchingJudge.fingerprint(self)

    async def verify_claim(self, claim, context):
        self.asked.append(claim)
        answer = self.answers[claim]
        usage = JudgeUsage(input_tokens=10, requests=1, cost_usd=self.cost)
        if isinstance(answer, JudgeError):
            answer.usage = usage
            raise answer
        verdict, confidence = answer
        return ClaimVerdict(verdict=verdict, confidence=confidence, usage=usage)


def decided(n=60, *, seed=1, skill=0.8, per_context=1, prefix=""):
    """Claims that a judge of some skill has decided, half of them supported."""
    random = Random(seed)
    rows = []
    for number in range(n):
        supported = number % 2 == 0
        right = random.random() < skill
        verdict = "SUPPORTED" if supported == right else "NOT_ENOUGH_INFO"
        sure = 0.5 + 0.5 * random.random()
        rows.append(
            JudgedClaim(
                id=f"c{number:04}",
                cluster=f"{prefix}{number // per_context}",
                is_supported=supported,
                label="SUPPORTED" if supported else None,
                verdict=verdict,
                support=sure if verdict == "SUPPORTED" else 1 - sure,
                seconds=0.001 * (number + 1),
                usage=JudgeUsage(input_tokens=10, requests=1, cost_usd=0.001),
            )
        )
    return rows
