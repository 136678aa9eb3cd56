"""A scored chain in each framework, as an OTLP receiver sees it."""

import asyncio

import pytest
from served import APPS, SECRET, number_of, serve
from wire import Sdk, listening, values

from ragaliq import Monitor
from ragaliq.testing import ScriptedJudge

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
REQUESTS = 16


def run(app, sdk, requests, *, asynchronous, **options):
    """Serve, score and export; the runs' numbers by their ids."""
    results = []
    monitor = Monitor(
        judge=ScriptedJudge(),
        on_result=results.append,
        telemetry=sdk.options,
        metrics=["faithfulness"],
        **options,
    )
    with app.watched(monitor, sdk.tracer_provider):
        serve(app, sdk.tracer, requests, asynchronous=asynchronous)
        assert monitor.close(60.0)
    sdk.close()
    assert monitor.stats().outcomes == {"evaluated": requests}
    return {result.run.run_id: number_of(result.case.query) for result in results}


@pytest.fixture(params=APPS)
def app(request):
    return APPS[request.param]()


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_requests_at_once_are_each_linked_to_their_own_span_and_no_byte_holds_their_text(
    app, asynchronous
):
    async with listening() as (wire, received):
        sdk = Sdk(wire.url)
        numbers = await asyncio.to_thread(run, app, sdk, REQUESTS, asynchronous=asynchronous)
        await received.until("spans", len(wire.spans()))
        events = await received.until("events", REQUESTS)
    by_id = {span.span_id: span for span in received.spans}
    roots = [span for span in received.spans if span.links]
    assert len(roots) == REQUESTS
    seen = set()
    for root in roots:
        (link,) = root.links
        number = numbers[values(root.attributes)["ragaliq.target.run_id"]]
        chain = by_id[link.span_id]
        assert by_id[chain.parent_span_id].name == f"request {number}"
        assert link.trace_id == chain.trace_id
        assert root.trace_id != chain.trace_id
        seen.add((chain.trace_id, chain.span_id))
    assert len(seen) == REQUESTS
    assert {(event.trace_id, event.span_id) for event in events} == seen
    for text in (SECRET.encode(), b"Question", b"towers", b"far away"):
        assert text not in wire.own_bytes()


async def test_text_that_is_asked_for_is_in_spans_and_never_in_metrics(app):
    async with listening() as (wire, _):
        await asyncio.to_thread(
            run, app, Sdk(wire.url), 1, asynchronous=False, capture_content=True
        )
    texts = [values(span.attributes).get("ragaliq.claim.text") for span in wire.spans("ragaliq")]
    assert f"{SECRET} has nine towers." in texts
    assert SECRET.encode() not in b"".join(wire.bodies["/v1/metrics"])
