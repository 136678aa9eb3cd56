"""A scored chain in each framework, as an OTLP receiver sees it."""

from __future__ import annotations

import asyncio

import pytest
from applications import APPS, SECRET, number_of, serve
from wire import Sdk, listening, values

from ragaliq import Monitor, __version__
from ragaliq.telemetry import catalogue
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
        evaluators=["faithfulness"],
        **options,
    )
    with app.watched(monitor, sdk.tracer_provider):
        serve(app(), sdk.tracer, requests, asynchronous=asynchronous)
        assert monitor.close(60.0)
    sdk.close()
    assert monitor.stats().outcomes == {"evaluated": requests}
    return {result.run.run_id: number_of(result.case.query) for result in results}


@pytest.fixture(params=APPS)
def app(request):
    return APPS[request.param]


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


async def test_names_types_units_resource_and_exemplars_are_as_described(app):
    async with listening() as (wire, received):
        sdk = Sdk(wire.url)
        await asyncio.to_thread(run, app, sdk, 1, asynchronous=False)
        await received.until("spans", len(wire.spans()))
        (event,) = await received.until("events", 1)
    own = wire.spans("ragaliq")
    (root,) = [span for span in own if span.links]
    (metric,) = [span for span in own if span.name == "evaluation faithfulness"]
    claims = [span for span in own if span.name.startswith("claim ")]
    assert (metric.parent_span_id, len(claims)) == (root.span_id, 2)
    assert {span.span_id for span in own} <= {span.span_id for span in received.spans}

    for carrier, described in (
        (root, catalogue.ROOT_SPAN),
        (metric, catalogue.METRIC_SPAN),
        (claims[0], catalogue.CLAIM_SPAN),
        (event, catalogue.EVENT),
    ):
        types = {each.name: each.type for each in described}
        for name, value in values(carrier.attributes).items():
            generic = name.replace("evaluations.0.", "evaluations.<i>.")
            assert types[generic] == type_on_the_wire(value), name

    attributes = values(event.attributes)
    assert event.event_name == "gen_ai.evaluation.result"
    assert bytes.fromhex(attributes["ragaliq.evaluation.trace_id"]) == metric.trace_id
    assert bytes.fromhex(attributes["ragaliq.evaluation.span_id"]) == metric.span_id
    assert attributes["gen_ai.evaluation.score.value"] == 0.5
    assert attributes["gen_ai.evaluation.explanation"] == "1 of 2 claims supported"

    units = {each.name: each.unit for each in catalogue.METRICS}
    measured = {each.name: each for each in received.metrics if each.name in units}
    assert {name: each.unit for name, each in measured.items()}.items() <= units.items()
    (scores,) = measured["ragaliq.evaluation.score"].histogram.data_points
    (exemplar,) = scores.exemplars
    (link,) = root.links
    assert (exemplar.trace_id, exemplar.span_id) == (link.trace_id, link.span_id)
    assert len(scores.explicit_bounds) == 21
    runs = [point for point in measured["ragaliq.run.count"].sum.data_points if point.as_int]
    assert [(values(point.attributes), point.as_int) for point in runs] == [
        ({"ragaliq.run.outcome": "evaluated"}, 1)
    ]

    resources = wire.resources()
    assert len(resources) >= 3
    for resource in resources:
        assert resource["service.name"] == "shop"
        assert resource["deployment.environment.name"] == "test"
    assert __version__.encode() in b"".join(wire.bodies["/v1/traces"])


def type_on_the_wire(value):
    if isinstance(value, list):
        (element,) = {type_on_the_wire(item) for item in value}
        return f"{element}[]"
    return {str: "string", float: "double", int: "int", bool: "boolean"}[type(value)]


async def test_text_that_is_asked_for_is_in_spans_and_never_in_metrics(app):
    async with listening() as (wire, _):
        await asyncio.to_thread(
            run, app, Sdk(wire.url), 1, asynchronous=False, capture_content=True
        )
    texts = [values(span.attributes).get("ragaliq.claim.text") for span in wire.spans("ragaliq")]
    assert f"{SECRET} has nine towers." in texts
    assert SECRET.encode() not in b"".join(wire.bodies["/v1/metrics"])
