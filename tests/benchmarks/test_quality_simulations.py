"""What anchored quality and its alarms promise, by simulation; prints the docs page's tables.

Coverage: in so many of 2,000 weeks the 95 % interval holds the true mean, for judges that are good,
that call most wrong claims right, that guess, and that get worse within the week. False alarms: in
so many of 200 months without a change something is raised. Detection: how many judged answers it
takes to see a drop of 0.1.
"""

import math
from random import Random

import pytest

from ragaliq.lab.alarm import Watch
from ragaliq.lab.prediction_powered import prediction_powered_mean
from ragaliq.records.store import StoredScore

pytestmark = pytest.mark.benchmark

DAY = 86_400.0
ANSWERS = 600
SCORE = StoredScore("", "shop", 0.0, "faithfulness", 0.0, 1.0, "judge", "a", "", True)


def answer_of(random, judge, progress):
    """An answer's true score, the judge's, and the size by which it is drawn."""
    claims = random.choice([1, 2, 3, 3, 4, 5])
    wrong = 0.02 if random.random() < 0.7 else 0.05 + 0.3 * random.random()
    truth = judged = 0
    doubt = 0.0
    for _ in range(claims):
        is_right = random.random() >= wrong
        errs = {
            "good": 0.04,
            "lenient": 0.05 if is_right else 0.7,
            "guessing": 0.5,
            "drifting": 0.03 if progress < 0.5 else 0.2,
        }[judge]
        is_wrong = random.random() < errs
        confidence = 0.6 if random.random() < (0.6 if is_wrong else 0.1) else 0.97
        truth += is_right
        judged += is_right != is_wrong
        doubt += confidence * (1.0 - confidence)
    return truth / claims, judged / claims, max(0.2, 2.0 * math.sqrt(doubt) / claims)


TRUTH = 1.0 - (0.7 * 0.02 + 0.3 * 0.2)


def week(random, judge, labelled):
    """The estimate of a week of which answers are sampled, judged, drawn and labelled."""
    line = []
    while len(line) < ANSWERS:
        truth, judged, size = answer_of(random, judge, len(line) / ANSWERS)
        chance = 0.9 if random.random() < 0.1 else 0.4
        if random.random() < chance:
            line.append(((1.0 - random.random()) / size, truth, judged, size, 1.0 / chance))
    line.sort()
    drawn, others, reach = line[:labelled], line[labelled:], line[labelled - 1][0]
    return prediction_powered_mean(
        [row[1] for row in drawn],
        [row[2] for row in drawn],
        [row[2] for row in others],
        probabilities=[min(1.0, row[3] * reach) for row in drawn],
        weights=[row[4] for row in drawn],
        unlabelled_weights=[row[4] for row in others],
    )


@pytest.mark.parametrize("labelled", [40, 140])
@pytest.mark.parametrize("judge", ["good", "lenient", "guessing", "drifting"])
def test_intervals_hold_the_truth_in_93_to_97_of_100_weeks(judge, labelled, report):
    random, weeks = Random(22), 2000
    held, width, alone = 0, 0.0, 0.0
    for _ in range(weeks):
        found = week(random, judge, labelled)
        held += found.estimate.low <= TRUTH <= found.estimate.high
        width += found.estimate.width / weeks
        alone += found.cheap_mean / weeks
    report([f"| {judge} | {alone:.2f} | {labelled} | {held / weeks:.1%} | +-{width / 2:.3f} |"])
    assert 0.93 <= held / weeks <= 0.97


def month(random, *, per_day, chances, drop_at=None, rhythm=0.0, days=28):
    """The number of judged answers from a drop, or from the start, to the alarm; None without."""
    watch = Watch("shop", "faithfulness")
    number = since = 0
    while number < 1000 + days * per_day:
        hour = 2.0 * math.pi * number / per_day
        has_dropped = drop_at is not None and number >= 1000 + drop_at * per_day
        mean = (0.8 if has_dropped else 0.9) + rhythm * math.sin(hour)
        wrong = (1.0 - mean) / 0.35 if random.random() < 0.35 else 0.0
        claims = random.randint(1, 5)
        score = sum(random.random() >= wrong for _ in range(claims)) / claims
        chance = chances[0] if score < 0.5 else chances[1]
        if random.random() >= chance:
            continue
        number += 1
        since += has_dropped
        drawn = SCORE._replace(
            run_id=str(number), time=number * DAY / per_day, score=score, weight=1.0 / chance
        )
        if watch.add(drawn):
            return since
    return None


TRAFFIC = {"all alike": (1.0, 1.0), "bad answers more often": (0.8, 0.2)}


@pytest.mark.parametrize("rhythm", [0.0, 0.02])
@pytest.mark.parametrize("chances", TRAFFIC)
def test_a_month_without_a_change_raises_hardly_an_alarm(chances, rhythm, report):
    random, months = Random(5), 200
    runs = [
        month(random, per_day=60, chances=TRAFFIC[chances], rhythm=rhythm) for _ in range(months)
    ]
    false = sum(run is not None for run in runs)
    report([f"| {chances} | +-{rhythm:g} a day | {false} of {months} months |"])
    assert false / months <= 0.05


@pytest.mark.parametrize("drop_at", [1, 14])
@pytest.mark.parametrize("chances", TRAFFIC)
def test_a_drop_of_a_tenth_is_seen_within_so_many_judged_answers(chances, drop_at, report):
    random = Random(6)
    found = sorted(
        run
        for run in (
            month(random, per_day=60, chances=TRAFFIC[chances], drop_at=drop_at, days=drop_at + 56)
            for _ in range(60)
        )
        if run is not None
    )
    half, most = found[len(found) // 2], found[len(found) * 9 // 10]
    report([f"| {chances} | day {drop_at} | {half} | {most} | {len(found)} of 60: {found[-1]} |"])
    assert len(found) == 60
    assert found[-1] <= 2400
