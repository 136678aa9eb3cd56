"""The same verdicts in every process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SCRIPT = """
import asyncio, json
from ragaliq.judges.local import LocalJudge

context = [
    "Refunds are processed within five days by Maria Lopez in Madrid or Ann Berg in Oslo.",
    "Refunding processors process refundable refunds; business is business. 退货期限为30天。",
]
claims = [
    "Refunds are processed within 10 days.",
    "The refund processing was done by Carlos Ruiz in Madrid.",
    "Refunded processes are refundable by Zoe, Yan, Xu and Wei in Utopia, Vienna and Turin.",
    "Business refunds take five days.",
    "退货期限为60天。",
]

async def main():
    judge = LocalJudge()
    verdicts = await judge.verify_claims(claims, context)
    relevance = [await judge.evaluate_relevance("How long do refunds take?", c) for c in claims]
    return verdicts.model_dump(), [r.model_dump() for r in relevance]

print(json.dumps(asyncio.run(main())))
"""


def verdicts(seed: str) -> object:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("seed", ["1", "4242"])
def test_the_hash_seed_changes_nothing(seed):
    assert verdicts(seed) == verdicts("0")
