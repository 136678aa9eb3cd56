"""A FastAPI service that streams RAG answers, with ragaliq attached.

    uvicorn --app-dir examples/fastapi_service app:app
    curl -N --get localhost:8000/ask --data-urlencode 'question=What do colour prints cost?'
    curl localhost:8000/stats

Settings from the environment, in addition to ragaliq's own:

- SERVICE_STORE: where results are kept, such as `sqlite:///results.db`; by default nowhere.
- SERVICE_BROKER: a broker's address, such as `redis://localhost:6379/0`; then `ragaliq worker`
  processes judge, and their settings say where results are kept.
- OTEL_EXPORTER_OTLP_ENDPOINT: where telemetry goes; by default nowhere.
- SERVICE_SECONDS_PER_WORD: how fast the stand-in for a language model speaks.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from langchain_ragaliq import RagaliqCallbackHandler
from library import build_chain
from ragaliq import Monitor, lifespan
from ragaliq.telemetry import configure

logger = logging.getLogger("uvicorn.error")


def build_monitor() -> Monitor:
    """Monitor that evaluates in this process, or enqueues runs for workers of a broker."""
    if broker := os.environ.get("SERVICE_BROKER"):
        return Monitor(executor=broker)
    store = os.environ.get("SERVICE_STORE")
    return Monitor(sinks=[store] if store else [])


monitor = build_monitor()
handler = RagaliqCallbackHandler(monitor, pipeline="library")
chain = build_chain(float(os.environ.get("SERVICE_SECONDS_PER_WORD", "0.03")))


@asynccontextmanager
async def report(_: FastAPI) -> AsyncIterator[None]:
    """The application's own beginning and end; its end comes after the monitor's."""
    if os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        # Here and not above: each process that a server forks needs exporters of its own.
        configure(service_name=os.environ.get("OTEL_SERVICE_NAME", "library"))
    yield
    logger.info("runs of process %d: %s", os.getpid(), json.dumps(counts()))


# uvicorn ends by the signal it was sent, so no exit hook of Python's runs: this is where what was
# accepted gets evaluated before the process is gone.
app = FastAPI(title="Library", lifespan=lifespan(monitor, report))


@app.get("/ask")
async def ask(question: str) -> StreamingResponse:
    """Answer word by word; a client that hangs up ends the chain."""
    words = chain.astream(question, config={"callbacks": [handler]})
    return StreamingResponse(words, media_type="text/plain")


@app.get("/stats")
def stats() -> dict[str, Any]:
    """What became of every run of this worker process."""
    return counts()


def counts() -> dict[str, Any]:
    """The monitor's counts in a form that can be sent."""
    now = monitor.stats()
    return {
        "process": os.getpid(),
        "started": now.started,
        "executor": now.executor,
        "publish_errors": now.publish_errors,
        "pending": now.pending,
        "outcomes": dict(now.outcomes),
        "incomplete": dict(now.incomplete),
        "evaluations": {name: dict(statuses) for name, statuses in now.evaluations.items()},
        "sinks": {name: asdict(sink) for name, sink in now.sinks.items()},
    }
