"""Recorded runs of the applications, as the adapters hand them over, and their replay.

A replay finds the evidence anew from the recorded events, without the frameworks; question and
answer are as they were recorded. `make runs ARGS=--record` writes them.
"""

import gzip
import json
from unittest.mock import patch

from harness import FOLDER, Observed, applications, case_of, observe

from ragaliq import Monitor
from ragaliq.capture import RunLog
from ragaliq.live.run import RunHandle
from ragaliq.testing import ScriptedJudge

RECORDINGS = FOLDER / "recordings"


def record(framework):
    """Run the applications of a framework and write down what was submitted of each."""
    lines = [json.dumps(_recorded(each)) for each in applications(framework).values()]
    RECORDINGS.mkdir(exist_ok=True)
    # Without the time, so that what did not change is the same file.
    data = gzip.compress("\n".join(lines).encode(), mtime=0)
    (RECORDINGS / f"{framework}.jsonl.gz").write_bytes(data)
    return len(lines)


def _recorded(application):
    submitted, submit = [], RunHandle.submit

    def keep(run, log, *, session_id=None, **options):
        submitted.append((log.to_plain(), session_id))
        return submit(run, log, session_id=session_id, **options)

    with patch.object(RunHandle, "submit", keep):
        observed = observe(application)
    runs = [
        {"session": session, "log": {**log, "id": f"{application.name}/{place}"}}
        for place, (log, session) in enumerate(submitted)
    ]
    return {"name": application.name, "reasons": observed.reasons, "runs": runs}


def recordings(framework):
    """The recordings of a framework's applications, by name."""
    lines = gzip.decompress((RECORDINGS / f"{framework}.jsonl.gz").read_bytes()).splitlines()
    return {line["name"]: line for line in map(json.loads, lines)}


def replay(recording):
    """What the package makes of recorded runs."""
    results = []
    with Monitor(judge=ScriptedJudge(), on_result=results.append) as monitor:
        for run in recording["runs"]:
            log = RunLog.from_plain(run["log"])
            assert monitor.begin(log.id).submit(log, session_id=run["session"])
            assert monitor.flush(60)  # the next turn of a conversation needs this one's case
    return Observed([case_of(result.case) for result in results], recording["reasons"])
