"""The main house works where every annex is missing."""

import subprocess
import sys

MAIN_HOUSE_ALONE = """
import json, os, sys
from pathlib import Path

ANNEXES = [f"ragaliq.{room}" for room in "collect judges.small lab traces worker".split()]


class NoAnnex:
    def find_spec(self, name, path=None, target=None):
        if any(f"{name}.".startswith(f"{annex}.") for annex in ANNEXES):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, NoAnnex())

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq.cli.app import run

TEXT = "The shop opens at 9."
ROW = {"query": "When?", "context": [TEXT], "response": TEXT}
Path("cases.jsonl").write_text(json.dumps(ROW) + "\\n")
Path("cases.csv").write_text(f"query,context,response\\nWhen?,{TEXT},{TEXT}\\n")
Path("spans.json").write_text('{"resourceSpans": []}')


def ragaliq(*arguments):
    sys.argv = ["ragaliq", *arguments]
    return run()


assert ragaliq("evaluate", "cases.csv", "--judge", "local", "--sink", "sqlite:///live.db") == 0
assert ragaliq("evaluate", "cases.jsonl", "--judge", "local", "--out", "results.jsonl") == 0
assert ragaliq("estimate", "cases.csv", "--judge", "local") == 0
assert ragaliq("report", "live.db", "-o", "page.html") == 0
assert ragaliq("doctor", "--judge", "local") == 0

handler = RagaliqCallbackHandler(judge="local")
chain = RunnableLambda(lambda q: {"context": [Document(TEXT)], "answer": TEXT})
chain.invoke("When?", config={"callbacks": [handler]})
handler.monitor.flush()
assert handler.monitor.stats().outcomes == {"evaluated": 1}

# What belongs to an annex says so.
assert ragaliq("evaluate", "spans.json", "--judge", "local") == 2
Path("live.labels.jsonl").write_text("")
assert ragaliq("report", "live.db", "-o", "page.html") == 2
assert ragaliq("evaluate", "cases.csv", "--judge", "entailment:x.onnx") == 2
"""


def test_files_reports_estimates_and_a_live_handler_need_no_annex(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", MAIN_HOUSE_ALONE],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for room in ("traces", "lab", "judges.small"):
        assert f"this needs ragaliq.{room}, which this installation" in done.stderr
