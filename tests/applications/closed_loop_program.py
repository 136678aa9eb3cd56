"""Run by `test_closed_loop.py`: one call after the other, and the seconds that each took."""

import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from rag_chain import QUESTION, rag_chain

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import Monitor

niceness, seconds = sys.argv[1], float(sys.argv[2])
chain, callbacks = rag_chain(), []
if niceness != "none":
    monitor = Monitor(judge="local", executor="process", niceness=int(niceness))
    callbacks = [RagaliqCallbackHandler(monitor)]
for _ in range(30):
    chain.invoke(QUESTION, {"callbacks": callbacks})
if callbacks:
    assert monitor.flush(60)  # the process that judges has started
found, end = [], time.perf_counter() + seconds
while time.perf_counter() < end:
    started = time.perf_counter()
    chain.invoke(QUESTION, {"callbacks": callbacks})
    found.append(time.perf_counter() - started)
if callbacks:
    assert set(monitor.stats().outcomes) == {"evaluated"}
sys.stdout.write(json.dumps(found))
sys.stdout.flush()
os._exit(0)
