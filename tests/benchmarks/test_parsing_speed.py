"""Reading judges' replies: a fuzz run of 100,000 replies, and the time hostile ones take."""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter

import pytest

from ragaliq.errors import JudgeRefusalError, JudgeResponseError
from ragaliq.judges import parse_json_reply, parse_verdicts
from ragaliq.judges.wire import VerdictsReply

pytestmark = pytest.mark.benchmark

REPLIES = 100_000
SEED = 20_241_219
VERDICTS = ("SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO")
WORDS = (
    "the sky is blue and grass green on monday because context says so nothing yes no 1 0".split()
)
PIECES = [
    *"[]{}\"'`:,*#|-. \n01",
    *(
        '{"verdict": 1}',
        '"verdict":',
        "Verdict:",
        "1. ",
        "Yes",
        "No ",
        "I cannot ",
        "not supported",
    ),
    *(
        "Final verdict for each statement in order: ",
        "```",
        "<think>",
        "\\u",
        "\ud800",
        "NaN",
        "是",
    ),
]
HOSTILE = (
    *("[", "{", '"', "'", "\\", '\\"', "}", '{"a":', '[{"a":"', "{a:", "{“", '"{', "[1,", "`:=#"),
    *('{"verdict":1}', '[{"verdict":1},', "/*", "//", "1. ", "1. Yes\n", "- Yes\n", "Yes. ", "No "),
    *("Verdict: ", "| 1 | a |\n", "Statement ", "not ", "yes/", "✅", "是", " ", "\n", "a", "1 "),
    *(
        "Final verdict for each statement in order: ",
        "I cannot ",
        "<think>",
        "</think>\n",
        "\ud800",
    ),
)


def sentence(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(2, 9))).capitalize() + "."


def well_formed(rng: random.Random) -> tuple[str, list[str]]:
    """A reply in one of the known forms, and the verdicts it gives."""
    said = rng.choices(VERDICTS, k=rng.randint(1, 6))
    rows = [{"statement": sentence(rng), "reason": sentence(rng), "verdict": item} for item in said]
    forms = (
        lambda: json.dumps({"statements": rows}),
        lambda: f"Here it is:\n```json\n{json.dumps(rows, indent=1)}\n```\nDone.",
        lambda: repr(rows),
        lambda: "\n".join(map(json.dumps, rows)),
        lambda: "\n".join(
            f"Statement {n}: {row['statement']}\nReason: {row['reason']}\nVerdict: {row['verdict']}"
            for n, row in enumerate(rows, 1)
        ),
        lambda: "\n".join(f"{n}. {item}: the context" for n, item in enumerate(said, 1)),
        lambda: "Final verdict for each statement in order: " + ". ".join(said) + ".",
    )
    return rng.choice(forms)(), said


def mutated(rng: random.Random, reply: str) -> str:
    for _ in range(rng.randint(1, 4)):
        start = rng.randint(0, len(reply))
        end = start + rng.randint(0, 12)
        kind = rng.randrange(5)
        if kind == 0:
            reply = reply[:start] + reply[end:]
        elif kind == 1:
            reply = reply[:start] + rng.choice(PIECES) + reply[start:]
        elif kind == 2:
            reply = reply[:end] + reply[start:]
        elif kind == 3:
            reply = reply[:start] + "\n" + sentence(rng) + "\n" + reply[start:]
        elif rng.random() < 0.3:
            reply = reply[:start]
    return reply


def generated(rng: random.Random) -> tuple[str, int, list[str] | None]:
    """A reply, how many verdicts are expected of it and, where certain, which."""
    kind = rng.randrange(4)
    if kind == 0:
        reply, said = well_formed(rng)
        return reply, len(said), said
    if kind in (1, 2):
        reply, said = well_formed(rng)
        return mutated(rng, reply), len(said), None
    return "".join(rng.choices(PIECES, k=rng.randint(0, 40))), rng.randint(0, 5), None


def outcome(reply: str, expected: int, said: list[str] | None) -> str:
    try:
        found = parse_verdicts(reply, expected)
    except JudgeRefusalError:
        assert said is None
        return "refusal"
    except JudgeResponseError:
        assert said is None
        return "no verdict"
    indices = [item.index for item in found]
    assert indices == sorted(set(indices))
    assert indices[0] >= 0
    assert said is None or [item.verdict for item in found] == said
    share = sum(item.verdict == "SUPPORTED" for item in found) / len(found)
    assert 0.0 <= share <= 1.0
    return "all verdicts" if len(found) >= expected else "some verdicts"


def test_a_hundred_thousand_generated_replies_give_verdicts_or_our_errors():
    rng = random.Random(SEED)
    outcomes: Counter[str] = Counter()
    started = time.perf_counter()
    for _ in range(REPLIES):
        outcomes[outcome(*generated(rng))] += 1
    elapsed = time.perf_counter() - started
    counts = ", ".join(f"{name} {count}" for name, count in outcomes.most_common())
    sys.stdout.write(f"\n{REPLIES} replies in {elapsed:.1f} s: {counts}\n")
    assert elapsed < 60
    assert set(outcomes) == {"all verdicts", "some verdicts", "no verdict", "refusal"}


def seconds(reply: str) -> float:
    started = time.perf_counter()
    for read in (lambda: parse_verdicts(reply, 3), lambda: parse_json_reply(reply, VerdictsReply)):
        try:
            read()
        except (JudgeRefusalError, JudgeResponseError):
            continue
    return time.perf_counter() - started


def test_hostile_replies_take_time_in_proportion_to_their_length():
    slowest = (0.0, "")
    for unit in HOSTILE:
        short, long = (
            min(seconds(unit * (size // len(unit))) for _ in range(2)) for size in (8_000, 64_000)
        )
        slowest = max(slowest, (long, unit))
        # Eight times the text: a quadratic reader would need sixty-four times as long.
        assert long < 24 * short + 0.1, unit
    sys.stdout.write(f"\nslowest: 64,000 characters of {slowest[1]!r} in {slowest[0]:.2f} s\n")


@pytest.mark.parametrize("unit", ['"', "\\", "{", "[", "}", '\\"'])
def test_a_million_brackets_or_quotation_marks_take_seconds(unit):
    elapsed = seconds(unit * (1_000_000 // len(unit)))
    sys.stdout.write(f"\n1,000,000 characters of {unit!r} in {elapsed:.2f} s\n")
    assert elapsed < 20
