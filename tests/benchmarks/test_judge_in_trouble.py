"""With the judge down, slow or refusing everything, the service is as fast as without ragaliq.

The same calls are made without a handler and with one for each trouble, interleaved one by one in
a random order, so that whatever slows the machine down slows all of them down.
"""

import random
import socket
from statistics import median, quantiles
from time import perf_counter

import pytest
from rag_chain import QUESTION, rag_chain

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import ClaudeJudge, JudgeRefusalError, Monitor
from ragaliq.testing import ScriptedJudge

CALLS = 400
MODEL_SECONDS = 0.02
# A real model takes 50 times as long; what a handler adds is 50 times less of it.
AT_MOST = {"p25": 1.10, "median": 1.10, "p99": 1.5}


def nobody_listens():
    """An address at which connections are refused."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def troubled_monitors():
    refusal = JudgeRefusalError("I cannot help with that.")
    methods = ("extract_statements", "evaluate_relevance")
    return {
        "judge down": Monitor(judge=ClaudeJudge(base_url=nobody_listens(), api_key="none")),
        "judge down, no breaker": Monitor(
            judge=ClaudeJudge(base_url=nobody_listens(), api_key="none"), breaker=None
        ),
        "judge slow, queue full": Monitor(judge=ScriptedJudge(delay=3600.0), max_queue=20),
        "judge refuses": Monitor(judge=ScriptedJudge(failures=dict.fromkeys(methods, refusal))),
    }


def figures(times):
    return {
        "p25": quantiles(times, n=4)[0],
        "median": median(times),
        "p99": quantiles(times, n=100)[98],
    }


@pytest.mark.benchmark
def test_a_judge_in_trouble_does_not_slow_the_service_down(report):
    monitors = troubled_monitors()
    callbacks = {"no handler": [], "no handler, again": []}
    callbacks |= {name: [RagaliqCallbackHandler(m)] for name, m in monitors.items()}
    chain, times = rag_chain(MODEL_SECONDS), {name: [] for name in callbacks}
    order = random.Random(0)
    for number in range(CALLS + 10):
        for name in order.sample(list(callbacks), len(callbacks)):
            started = perf_counter()
            chain.invoke(QUESTION, {"callbacks": callbacks[name]})
            if number >= 10:
                times[name].append(perf_counter() - started)

    found = {name: figures(taken) for name, taken in times.items()}
    base = found["no handler"]
    lines = [
        f"{CALLS} calls of each, interleaved; ms, and in multiples of the calls without a handler"
    ]
    for name, values in found.items():
        cells = [f"{k} {1e3 * v:7.2f} ({v / base[k]:4.2f})" for k, v in values.items()]
        lines.append(f"  {name:24}" + "   ".join(cells))
    for name, monitor in monitors.items():
        stats = monitor.stats()
        assert stats.started == CALLS + 10
        assert stats.started == sum(stats.outcomes.values()) + stats.pending
        statuses = {k: dict(v) for k, v in stats.evaluations.items()}
        lines.append(f"  {name}: {stats.outcomes}, unjudged {stats.unjudged}, {statuses}")
        monitor.close(0.0)
    report(lines)
    noise = found["no handler, again"]
    for name in monitors:
        for figure, allowed in AT_MOST.items():
            grace = max(1.0, noise[figure] / base[figure])
            assert found[name][figure] / base[figure] <= allowed * grace, (name, figure)
