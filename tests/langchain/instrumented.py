"""Runs chains under one instrumentation and prints, as JSON, which span each evaluation is about.

In a process of its own: neither instrumentation can be taken out of a process without a trace.
"""

import asyncio
import json
import sys
from importlib import import_module

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rag_parts import ANSWER, model, rag_chain

from langchain_ragaliq import RagaliqCallbackHandler, attach
from ragaliq import Monitor, TelemetryOptions
from ragaliq.testing import ScriptedJudge

AT_THE_SAME_TIME = 10


async def consume(chain, question, config):
    async for _ in chain.astream(question, config):
        pass


WAYS = {
    "invoke": lambda *call: call[0].invoke(*call[1:]),
    "ainvoke": lambda *call: asyncio.run(call[0].ainvoke(*call[1:])),
    "stream": lambda *call: list(call[0].stream(*call[1:])),
    "astream": lambda *call: asyncio.run(consume(*call)),
}


def main(module, name):
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    getattr(import_module(module), name)().instrument(tracer_provider=provider, skip_dep_check=True)
    results = []
    monitor = Monitor(
        judge=ScriptedJudge(),
        on_result=results.append,
        telemetry=TelemetryOptions(tracer_provider=provider),
    )
    handler = RagaliqCallbackHandler(monitor)

    def report(**what):
        assert monitor.flush(30)
        found = {f"{s.context.span_id:016x}": s.name for s in exporter.get_finished_spans()}
        for result in results:
            assert result.case.response == ANSWER
            source, span = result.target.source, found.get(result.target.span_id)
            row = {**what, "question": result.case.query, "source": source, "span": span}
            sys.stdout.write(json.dumps(row) + "\n")
        results.clear()
        exporter.clear()

    async def at_the_same_time(config):
        chains = [
            rag_chain(llm=model(delay=0.01)).with_config(run_name=f"rag{number}")
            for number in range(AT_THE_SAME_TIME)
        ]
        await asyncio.gather(
            *(chain.ainvoke(f"{place}?", config) for place, chain in enumerate(chains))
        )

    chain = rag_chain().with_config(run_name="rag")
    for attached in (False, True):
        config = {} if attached else {"callbacks": [handler]}
        if attached:
            attach(handler)
        for way, call in WAYS.items():
            call(chain, "How long?", config)
            report(way=way, attached=attached, ambient=False)
            with provider.get_tracer("application").start_as_current_span("request"):
                call(chain, "How long?", config)
            report(way=way, attached=attached, ambient=True)
        asyncio.run(at_the_same_time(config))
        report(way="gather", attached=attached, ambient=False)
    monitor.close(5)


main(*sys.argv[1:])
