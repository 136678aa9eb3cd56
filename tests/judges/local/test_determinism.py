"""The same verdicts in every process, with any hash seed, on every Python that runs these tests.

What was recorded are digests: a change of how the code is arranged changes no verdict, reason,
evidence or relevance. `recorded.py` makes them.
"""

import json
import os
import subprocess
import sys

import pytest
import recorded

DIGESTS = json.loads(recorded.DIGESTS.read_text("utf-8"))
SCRIPT = "import asyncio, recorded; print(asyncio.run(recorded.digests(recorded.made_here())))"


async def test_verdicts_on_the_texts_of_this_folder_are_those_that_were_recorded():
    found = await recorded.digests(recorded.made_here())
    assert found == {name: DIGESTS[name] for name in found}


def test_the_hash_seed_changes_nothing():
    path = os.pathsep.join([str(recorded.HERE), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    one, other = (
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**environment, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        ).stdout
        for seed in ("0", "4242")
    )
    assert "minimal pairs" in one
    assert one == other


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
