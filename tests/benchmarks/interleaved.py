"""Comparing variants of one piece of work on a machine that others use as well.

The variants take turns in short blocks, in a new order every round, so that whatever slows the
machine down slows all of them down. Of the blocks' times the 25th percentile is compared: the
undisturbed ones, without the luck of the very fastest. Of several passes the quietest, in which all
variants together took least, gives the result; the others show the spread.
"""

import gc
import random
from collections.abc import Callable, Mapping
from statistics import quantiles
from time import perf_counter


class Comparison:
    """What each variant costs a call, per pass.

    Args:
        times: Per pass, seconds per call of every variant.
        baseline: The variant without anything added.
    """

    def __init__(self, times: list[dict[str, float]], baseline: str) -> None:
        self._times = times
        self._baseline = baseline

    def added(self, variant: str) -> float:
        """Seconds a call takes longer than the baseline's, in the quietest pass."""
        return self._added(self._quietest, variant)

    @property
    def base(self) -> float:
        """Seconds of a call of the baseline, in the quietest pass."""
        return self._quietest[self._baseline]

    def table(self, title: str) -> list[str]:
        """Lines to print."""
        lines = [f"{title}; a call takes {1e6 * self.base:,.0f} us with {self._baseline}"]
        lines.append(f"  {'':24}{'us added':>10}   {'of all passes':<18}{'ratio':>6}")
        for variant in self._quietest:
            every = sorted(1e6 * self._added(seconds, variant) for seconds in self._times)
            spread = f"[{every[0]:,.0f} .. {every[-1]:,.0f}]"
            added = self.added(variant)
            ratio = 1 + added / self.base
            lines.append(f"  {variant:24}{1e6 * added:10,.0f}   {spread:<18}{ratio:6.2f}")
        return lines

    @property
    def _quietest(self) -> dict[str, float]:
        return min(self._times, key=lambda seconds: sum(seconds.values()))

    def _added(self, seconds: dict[str, float], variant: str) -> float:
        return seconds[variant] - seconds[self._baseline]


def compare(
    variants: Mapping[str, Callable[[], object]],
    *,
    calls: int,
    rounds: int,
    passes: int,
    between: Callable[[], None],
) -> Comparison:
    """Measure variants; the first is the baseline.

    Args:
        variants: By name, what is called.
        calls: Calls in a block.
        rounds: Blocks of every variant in a pass.
        passes: How often everything is measured.
        between: Called before every pass, to clear away what the last one left.
    """
    order = random.Random(0)
    names = list(variants)
    times = []
    for _ in range(passes):
        between()
        gc.collect()
        blocks: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(rounds):
            for name in order.sample(names, len(names)):
                blocks[name].append(_seconds_per_call(variants[name], calls))
        times.append({name: quantiles(blocks[name], n=4)[0] for name in names})
    return Comparison(times, baseline=names[0])


def _seconds_per_call(call: Callable[[], object], calls: int) -> float:
    started = perf_counter()
    for _ in range(calls):
        call()
    return (perf_counter() - started) / calls
