"""A process makes one judge for the same words, and none where it was given one."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from ragaliq import ConfigurationError, score_batch
from ragaliq.judges.local import LocalJudge
from ragaliq.tables import judge_of_process

TABLE = pa.Table.from_pylist(
    [{"question": "When?", "answer": "The shop opens at 9.", "contexts": ["Open at 9."]}]
)


def named(judge, **settings):
    return judge_of_process(judge, **{"model": None, "calibration": None} | settings)


def test_the_same_words_give_the_same_judge_in_every_thread():
    assert named("local") is named("local")
    with ThreadPoolExecutor(8) as threads:
        assert len({id(judge) for judge in threads.map(named, ["local"] * 50)}) == 1


def test_another_model_is_another_judge(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
    assert named("claude") is named("claude")
    assert named("claude", model="claude-haiku-4-5") is not named("claude")
    assert named("claude", model="claude-haiku-4-5").model == "claude-haiku-4-5"


def test_a_judge_that_is_given_is_used_as_it_is():
    mine = LocalJudge()
    assert named(mine) is mine


def test_a_calibration_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match="calibration"):
        named("local", calibration=tmp_path / "none.json")


def score_in_child(pipe):
    scored = score_batch(TABLE)
    pipe.send((id(named("local")), scored.column("faithfulness_status").to_pylist()))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_worker_makes_its_own_judge_and_scores():
    score_batch(TABLE)
    ours = named("local")
    receiving, sending = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=score_in_child, args=(sending,))
    child.start()
    assert receiving.poll(60), "the forked worker did not answer"
    theirs, statuses = receiving.recv()
    child.join(60)
    assert statuses == ["scored"]
    assert theirs != id(ours)


PROBE = """
import builtins, json, sys
import ragaliq
before = sorted({name.partition(".")[0] for name in sys.modules} & {"pandas", "pyarrow", "numpy"})
ragaliq.score_batch
after = sorted({name.partition(".")[0] for name in sys.modules} & {"pandas", "pyarrow", "numpy"})
sys.modules["pyarrow"] = None
try:
    ragaliq.score_batch([])
except ragaliq.ConfigurationError as error:
    print(json.dumps([before, after, str(error)]))
"""


def test_neither_pandas_nor_pyarrow_is_loaded_before_a_table_is_scored():
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, timeout=60
    )
    before, after, said = json.loads(done.stdout)
    assert (before, after) == ([], [])
    assert "pip install 'ragaliq[parquet]'" in said
