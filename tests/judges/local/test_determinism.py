"""The same verdicts in every process, with any hash seed, on every Python.

`RAGALIQ_PYTHONS` may name more interpreters, set apart by colons, that have ragaliq's dependencies.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import recorded

from ragaliq.judges import LocalJudge

ROOT = Path(__file__).parents[3]
EXAMPLES = [json.loads(line) for line in recorded.EXAMPLES.read_text("utf-8").splitlines()]
DIGESTS = json.loads(recorded.DIGESTS.read_text("utf-8"))
SCRIPT = """
import asyncio, json, sys
from ragaliq.judges import LocalJudge

examples = json.load(sys.stdin)
context = list(dict.fromkeys(example["context"] for example in examples))

async def main():
    judge = LocalJudge()
    alone = [await judge.verify_claim(e["claim"], [e["context"]]) for e in examples]
    among = await judge.verify_claims([e["claim"] for e in examples], context)
    relevance = [await judge.evaluate_relevance("How long is it?", e["claim"]) for e in examples]
    claims = await judge.extract_claims("\\n".join(e["context"] for e in examples))
    replies = [*alone, among, *relevance, claims]
    return [reply.model_dump() for reply in replies]

json.dump(asyncio.run(main()), sys.stdout)
"""


@functools.cache
def reply(python: str, seed: str) -> str:
    own = ":".join(sys.path) if python == sys.executable else str(ROOT)
    done = subprocess.run(
        [python, "-c", SCRIPT],
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": own, "PATH": os.environ["PATH"]},
        input=json.dumps(EXAMPLES),
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    return done.stdout


def other_pythons() -> list[str]:
    named = [path for path in os.environ.get("RAGALIQ_PYTHONS", "").split(":") if path]
    found = [shutil.which(f"python3.{minor}") for minor in (11, 12, 13, 14)]
    return [path for path in (*named, *found) if path and able(path)]


def able(python: str) -> bool:
    needed = "import sys, pydantic, sentencex, Stemmer; sys.exit(sys.version_info < (3, 11))"
    done = subprocess.run([python, "-c", needed], capture_output=True, timeout=60, check=False)
    return done.returncode == 0


def test_the_hash_seed_changes_nothing():
    assert reply(sys.executable, "4242") == reply(sys.executable, "0")


def test_every_python_that_is_here_says_the_same():
    others = other_pythons()
    if not others:
        pytest.skip("no other Python here has the dependencies; name some in RAGALIQ_PYTHONS")
    for python in others:
        assert reply(python, "7") == reply(sys.executable, "0"), python


async def test_the_parameters_give_the_recorded_verdicts():
    judge = LocalJudge()
    for example in EXAMPLES:
        decision = await judge.verify_claim(example["claim"], [example["context"]])
        expected = (example["verdict"], example["confidence"])
        assert (decision.verdict, decision.confidence) == expected, example["claim"]


# A change of how the code is arranged changes no verdict, reason, evidence or relevance.


async def test_verdicts_on_the_texts_of_this_folder_are_those_that_were_recorded():
    found = await recorded.digests(recorded.made_here())
    assert found == {name: DIGESTS[name] for name in found}


needs_sets = pytest.mark.skipif(not recorded.LABELLED, reason="the labelled sets are not here")


@needs_sets
@pytest.mark.slow
@pytest.mark.parametrize("path", recorded.LABELLED, ids=recorded.name_of)
async def test_verdicts_on_a_labelled_set_are_those_that_were_recorded(path):
    every = recorded.SAMPLED.get(recorded.name_of(path), 1)
    found = await recorded.digests(recorded.labelled(path, every=every))
    assert found == {name: DIGESTS[name] for name in found}


@needs_sets
@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", recorded.SAMPLED)
async def test_verdicts_on_every_claim_of_a_large_set_are_those_that_were_recorded(name):
    path = next(path for path in recorded.LABELLED if recorded.name_of(path) == name)
    assert await recorded.digests(recorded.labelled(path)) == {name: DIGESTS[name]}
