"""The recorded chances make weighted means unbiased, whatever chose the runs."""

import random
import statistics

import pytest

from ragaliq import OnError, OnFeedback, OnLowScore, OnTag, Passage

METRIC = "relevance"
RULES = [OnTag("legal"), OnError(probability=0.5), OnLowScore(0.3, probability=0.2)]
RUNS, REPEATS = 1000, 20


class Population:
    """Runs of different kinds, each kind with a quality of its own; the bad ones stand out."""

    def __init__(self):
        dice = random.Random(7)
        self.facts, self.quality, self.complains = [], [], []
        for _ in range(RUNS):
            legal, broke = dice.random() < 0.1, dice.random() < 0.1
            score = dice.random()
            self.facts.append(
                {
                    "tags": ["legal"] if legal else [],
                    "had_errors": broke,
                    "passages": [Passage("text", None, score)],
                }
            )
            quality = 0.9 - 0.6 * legal - 0.4 * broke * dice.random() - 0.3 * (score < 0.3)
            self.quality.append(max(0.0, quality))
            self.complains.append(dice.random() < 0.3 * (quality < 0.5))

    @property
    def mean(self):
        return statistics.fmean(self.quality)


POPULATION = Population()


def estimates(traffic, *, seconds_between=1.0, listen=False, **sampling):
    """Weighted (Hajek) and plain means of many samples of one population, and weights' sums."""
    weighted, plain, stands_for = [], [], []
    for repeat in range(REPEATS):
        runs = traffic(("faithfulness", METRIC), **sampling)
        for number, facts in enumerate(POPULATION.facts):
            runs.clock.now += seconds_between
            runs.run(f"{repeat}-{number}", **facts)
            if listen and POPULATION.complains[number]:
                runs.feedback(f"{repeat}-{number}", value=False)
        taken = [run for run in runs.monitor.taken if METRIC in run.metric_probabilities]
        values = [POPULATION.quality[int(run.run_id.split("-")[1])] for run in taken]
        weights = [run.weight(METRIC) for run in taken]
        weighted.append(sum(map(float.__mul__, weights, values)) / sum(weights))
        plain.append(statistics.fmean(values))
        stands_for.append(sum(weights))
    return weighted, plain, stands_for


def distance(found, truth):
    """How many standard errors the mean of many estimates is away from the truth."""
    return abs(statistics.fmean(found) - truth) / (statistics.stdev(found) / len(found) ** 0.5)


DESIGNS = {
    "rates": {"rate": 0.3, "metrics": {METRIC: 0.1}},
    "rates, rules and a cap": {
        "rate": 0.5,
        "metrics": {METRIC: 0.2},
        "rules": RULES,
        "max_per_minute": 60,
        "seconds_between": 0.2,
    },
    "rules and feedback": {"rate": 0.1, "rules": [*RULES, OnFeedback()], "listen": True},
}


@pytest.mark.parametrize("design", DESIGNS)
def test_the_weighted_mean_is_that_of_all_traffic(traffic, design):
    weighted, plain, stands_for = estimates(traffic, **DESIGNS[design])
    assert distance(weighted, POPULATION.mean) < 3.5
    assert distance(stands_for, RUNS) < 3.5
    if "rules" in design:
        assert distance(plain, POPULATION.mean) > 10  # the rules look for the bad ones
