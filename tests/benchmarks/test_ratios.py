"""What the library costs, as ratios to what stands next to it in the same run, against a baseline.

python tests/benchmarks/test_ratios.py

records `baselines.json`, after a change that is meant to cost more, or to cost less. Processor time
is compared, not time on the clock: other work on the machine disturbs it little.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import asking
import pytest
from held_back import HeldBack
from opentelemetry.sdk.trace import TracerProvider
from rag_chain import QUESTION, TEXTS, ConstantRetriever, rag_chain
from test_executor_latency import ANSWER
from test_executor_latency import TEXTS as SENTENCES

from langchain_ragaliq import RagaliqCallbackHandler
from llama_index.evaluation.ragaliq import RagaliqSpanHandler
from ragaliq import Monitor, RAGTestCase, TelemetryOptions, evaluate

BASELINES = Path(__file__).with_name("baselines.json")
ROUNDS = 300
PROCESSES = 11
PARTS = "from langchain_core.runnables import chain"
CASES = 200
RUNS = 100


def ratio(with_it: Callable[[], object], without: Callable[[], object]) -> float:
    """Of the processor time of this thread; the two take turns."""
    taken: dict[Callable[[], object], list[int]] = {with_it: [], without: []}
    for _ in range(ROUNDS):
        for call, times in taken.items():
            begun = time.thread_time_ns()
            call()
            times.append(time.thread_time_ns() - begun)
    return median(taken[with_it]) / median(taken[without])


def asked(asks, handler, rate: float) -> float:
    """A request with a handler of ragaliq's to the same request without one."""
    held = HeldBack(rate)
    ours = [handler(held.monitor)]
    with asks() as ask:
        found = ratio(lambda: ask(ours), lambda: ask([]))
    held.end(ROUNDS)
    return found


def imported(statement: str, beside: str) -> float:
    """An import in a fresh process to another one in another."""

    def seconds(done: str) -> float:
        script = f"import time; t = time.process_time(); {done}; print(time.process_time() - t)"
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
        return float(ran.stdout)

    times = [(seconds(statement), seconds(beside)) for _ in range(PROCESSES)]
    return median(one for one, _ in times) / median(other for _, other in times)


def throughput() -> float:
    """Evaluating a case with the embedded judge to adding up a million whole numbers."""
    cases = [
        RAGTestCase(
            query=QUESTION,
            context=[*TEXTS[:2], f"Refunds are paid within {n} working days. The shop is open."],
            response=f"Refunds are paid within {n} working days. They come in cash.",
        )
        for n in range(CASES)
    ]
    evaluate(cases[:20], judge="local", metrics=["faithfulness"])
    shares = []
    for start in range(0, CASES, 20):
        begun = time.process_time()
        evaluate(cases[start : start + 20], judge="local", metrics=["faithfulness"])
        evaluated = time.process_time()
        sum(range(10_000_000))
        shares.append((evaluated - begun) / 20 / ((time.process_time() - evaluated) / 10))
    return median(shares)


def scored(telemetry: TelemetryOptions | None = None) -> float:
    """Processor time that a run judged by the embedded judge adds to the application's process.

    In parts of what the chain itself takes there.
    """
    chain = rag_chain(0.0, [ANSWER], ConstantRetriever(texts=SENTENCES))
    with Monitor(judge="local", executor="process", telemetry=telemetry) as monitor:
        ours = {"callbacks": [RagaliqCallbackHandler(monitor)]}

        def seconds(config: dict[str, list[RagaliqCallbackHandler]] | None) -> float:
            begun = time.process_time()
            for _ in range(RUNS):
                chain.invoke(QUESTION, config)
            assert monitor.flush(60.0)
            return time.process_time() - begun

        seconds(ours)  # starts the process
        pairs = [(seconds(None), seconds(ours)) for _ in range(PROCESSES)]
        assert monitor.stats().outcomes == {"evaluated": RUNS * (PROCESSES + 1)}
    return median(with_it for _, with_it in pairs) / median(bare for bare, _ in pairs) - 1.0


LANGCHAIN = asking.langchain, RagaliqCallbackHandler
LLAMA_INDEX = asking.llama_index, RagaliqSpanHandler
# And by how much a ratio may be over its baseline: as far as runs on a busy machine differ.
MEASURED: dict[str, tuple[Callable[[], float], float]] = {
    "LangChain handler, every run sampled": (lambda: asked(*LANGCHAIN, 1.0), 0.06),
    "LangChain handler, no run sampled": (lambda: asked(*LANGCHAIN, 0.0), 0.05),
    "LlamaIndex handler, every run sampled": (lambda: asked(*LLAMA_INDEX, 1.0), 0.06),
    "LlamaIndex handler, no run sampled": (lambda: asked(*LLAMA_INDEX, 0.0), 0.05),
    "import ragaliq / pydantic": (lambda: imported("import ragaliq", "import pydantic"), 0.05),
    "import of the pytest plugin / pytest": (
        lambda: imported("import pytest, ragaliq.pytest_plugin", "import pytest"),
        0.2,
    ),
    "import of a monitor / a chain's parts": (
        lambda: imported("from ragaliq import Monitor", PARTS),
        0.2,
    ),
    "import langchain_ragaliq / a chain's parts": (
        lambda: imported("import langchain_ragaliq", PARTS),
        0.3,
    ),
    "a case evaluated / a million additions": (throughput, 0.015),
    "a scored run, without telemetry / its chain": (scored, 0.25),
    "a scored run, with spans / its chain": (
        lambda: scored(TelemetryOptions(tracer_provider=TracerProvider())),
        0.25,
    ),
}


@pytest.mark.benchmark
@pytest.mark.parametrize("name", MEASURED)
def test_a_ratio_is_no_worse_than_its_baseline(name, report):
    baseline, (measure, slack) = json.loads(BASELINES.read_text("utf-8"))[name], MEASURED[name]
    found = measure()
    report([f"{name}: {found:.3f}, baseline {baseline:.3f}"])
    assert found <= baseline + slack


if __name__ == "__main__":
    recorded = {name: round(measure(), 3) for name, (measure, _) in MEASURED.items()}
    BASELINES.write_text(json.dumps(recorded, indent=2) + "\n", encoding="utf-8")
