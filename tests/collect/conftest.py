import gzip
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from ragaliq import Monitor
from ragaliq.collect import Assembly, collector_app
from ragaliq.collect.spool import Spool
from ragaliq.testing import ScriptedJudge

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "traces"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from otlp import protobuf  # noqa: E402


@pytest.fixture
def collecting(tmp_path):
    """A collector with these arguments, what it scored, and ways to send to it."""
    made = []

    def build(*, sample_rate=1.0, spool=False, server=(), sinks=(), max_queue=1000, **options):
        results = []
        if spool and made and made[-1][2] is not None:
            made[-1][2].close()  # as if its process had been killed
        monitor = Monitor(
            judge=ScriptedJudge(),
            sample_rate=sample_rate,
            on_result=results.append,
            sinks=sinks,
            max_queue=max_queue,
        )
        kept = Spool(tmp_path / "spool") if spool else None
        settled = {} if kept is None else {"on_settled": kept.settled}
        given = {"grace": 0.05, "quiet": 0.5} | settled | options
        assembly = Assembly(monitor, **given)
        client = TestClient(collector_app(monitor, assembly, spool=kept, **dict(server)))
        client.__enter__()

        def send(spans, *, path="/v1/traces", packed=False):
            body = spans if isinstance(spans, bytes) else protobuf(spans)
            headers = {"content-type": "application/x-protobuf"}
            if packed:
                body, headers["content-encoding"] = gzip.compress(body), "gzip"
            return client.post(path, content=body, headers=headers)

        def cases(count=1, timeout=20.0):
            deadline = time.monotonic() + timeout
            while len(results) < count and time.monotonic() < deadline:
                time.sleep(0.02)
            monitor.flush(10)
            return [result.case for result in sorted(results, key=lambda r: r.run.ended_at)]

        made.append((client, monitor, kept))
        held = {"client": client, "monitor": monitor, "assembly": assembly, "results": results}
        return SimpleNamespace(**held, send=send, cases=cases, spool=kept)

    yield build
    for client, monitor, kept in made:
        client.__exit__(None, None, None)
        monitor.close(5)
        if kept is not None:
            kept.close()
