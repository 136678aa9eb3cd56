"""Comparing variants of one piece of work on a machine that others use as well.

The variants take turns in short blocks, in a new order every round, so that whatever slows the
machine down slows all of them down. Of the blocks' times the 25th percentile is compared: the
undisturbed ones, without the luck of the very fastest. Of several passes the quietest, in which all
variants together took least, gives the result; the others show the spread.
"""

import gc
import random
from statistics import quantiles
from time import perf_counter


class Comparison:
    """Seconds per call of every variant, per pass, and the variant without anything added.

    Attributes:
        calls: How often every variant was called, the call before all passes included.
    """

    def __init__(self, times, baseline, calls):
        self._times, self._baseline, self.calls = times, baseline, calls

    def added(self, variant):
        """Seconds a call takes longer than the baseline's, in the quietest pass."""
        return self._added(self._quietest, variant)

    @property
    def base(self):
        """Seconds of a call of the baseline, in the quietest pass."""
        return self._quietest[self._baseline]

    def table(self, title):
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
    def _quietest(self):
        return min(self._times, key=lambda seconds: sum(seconds.values()))

    def _added(self, seconds, variant):
        return seconds[variant] - seconds[self._baseline]


def compare(variants, *, calls, rounds, passes, between):
    """Measure variants, by name what is called; the first is the baseline.

    Every variant is called once first, for what starts on first use. A pass has so many rounds, in
    each of which every variant has a block of so many calls; before every pass `between` clears
    away what the last one left.
    """
    for variant in variants.values():
        variant()
    order = random.Random(0)
    names = list(variants)
    times = []
    for _ in range(passes):
        between()
        gc.collect()
        blocks = {name: [] for name in names}
        for _ in range(rounds):
            for name in order.sample(names, len(names)):
                blocks[name].append(_seconds_per_call(variants[name], calls))
        times.append({name: quantiles(blocks[name], n=4)[0] for name in names})
    return Comparison(times, names[0], 1 + calls * rounds * passes)


def _seconds_per_call(call, calls):
    started = perf_counter()
    for _ in range(calls):
        call()
    return (perf_counter() - started) / calls
