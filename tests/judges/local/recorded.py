"""What the embedded judge decides, as digests of texts that are made here or labelled.

python tests/judges/local/recorded.py

writes `examples.jsonl` and `digests.json` again. Run it after the judge was trained, or was meant
to decide otherwise, and look at what changes. The labelled sets are read where they are found.
"""

import asyncio
import gzip
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import groupby, islice
from pathlib import Path
from random import Random

from ragaliq.judges import LocalJudge

HERE = Path(__file__).parent
EXAMPLES = HERE / "examples.jsonl"
DIGESTS = HERE / "digests.json"
DATA = Path(os.environ.get("RAGALIQ_DATA", HERE.parents[3] / "shared" / "data"))
LABELLED = sorted(DATA.glob("*.jsonl.gz"))

# Sentences with places to fill, and what may fill them: what the judge tells apart by.
SENTENCES = {
    "en": (
        "The {thing} of {name} {is} open for {number} {unit}.",
        "It {is} said that {name} paid {money} for the {thing}, but nobody has seen it.",
        "According to the context, the {thing} costs {money}; {name} disagrees.",
        "In {year}, {number} visitors came to the {thing} (see [{digit}]).",
        "Not only {name} but also the {thing} closed in {year}.",
        "How many {unit} does the {thing} take?",
    ),
    "de": (
        "Das {thing} von {name} ist {is} für {number} {unit} geöffnet.",
        "{name} zahlte im {digit}. Jahr {money}, aber {is} mehr als {year}.",
    ),
    "fr": ("Le {thing} de {name} n'est {is} ouvert avant {year}, pour {money}.",),
    "es": ("El {thing} de {name} {is} cuesta {money} desde {year}.",),
    "ru": ("{name}: {thing} {is} открыт {number} {unit}, с {year} года.",),
    "zh": ("{name}的{thing}{is}开放{number}天,自{year}年起。",),
}
WORDS = {
    "en": "museum bridge hotel warranty invoice note-book harbour café refund coöperative",
    "de": "Museum Brücke Hotel Garantie Rechnung Hafen",
    "fr": "musée pont hôtel garantie facture port",
    "es": "museo puente hotel garantía factura puerto",
    "ru": "музей мост гостиница гарантия счёт порт",
    "zh": "博物馆 大桥 酒店 保修 发票 港口",
}
DENIALS = {
    "en": ("is", "is", "is not", "isn't", "was never"),
    "de": ("immer", "nicht", "nie"),
    "fr": ("pas", "jamais", "plus"),
    "es": ("siempre", "no", "nunca"),
    "ru": ("всегда", "не", "никогда не"),
    "zh": ("", "不", "没有"),
}
UNITS = ("days", "working days", "weeks", "km", "kilometres", "miles", "%", "Tage", "heures")
MONEY = ("$5", "5 dollars", "12 million euros", "1.2bn €", "1,200.50 USD", "£ 3k", "no money")
NUMBERS = ("3", "three", "1,200", "1 200", "twenty-five", "2.5", "two hundred and fifty", "9")
NAMES = ("Ada Keller", "Ostend", "O'Neill", "Graz", "Müller", "李明", "John Smith")
LAYOUTS = ("{}", "- {}", "2. {}", "| {} | yes |", "**{}**", "> {}", "## {}", "```\n{}\n```", '"{}"')


def sentence(language: str, random: Random) -> str:
    """A sentence with its places filled."""
    return random.choice(SENTENCES[language]).format(
        thing=random.choice(WORDS[language].split()),
        name=random.choice(NAMES),
        number=random.choice(NUMBERS),
        unit=random.choice(UNITS),
        money=random.choice(MONEY),
        year=random.randrange(1870, 2026),
        digit=random.randrange(1, 30),
        **{"is": random.choice(DENIALS[language])},
    )


def generated() -> Iterator[tuple[str, list[str], str]]:
    """Set, context and answer: answers repeat, vary and mix what their context says."""
    for language in SENTENCES:
        random = Random(f"verdicts {language}")
        for _ in range(50):
            said = [sentence(language, random) for _ in range(random.randrange(1, 7))]
            context = ["\n".join(said[:3]), " ".join(said[2:])]
            lines = [*random.sample(said, 1), sentence(language, random), sentence("en", random)]
            answer = "\n".join(random.choice(LAYOUTS).format(line) for line in lines)
            yield f"generated {language}", context, answer


def made_here() -> Iterator[tuple[str, list[str], str]]:
    """Set, context and answer of everything that needs no labelled set."""
    for line in (HERE / "minimal_pairs.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            _, context, *claims = (cell.strip() for cell in line.split("|"))
            yield "minimal pairs", [context], "\n".join(claims)
    for line in EXAMPLES.read_text("utf-8").splitlines():
        example = json.loads(line)
        yield "examples", [example["context"]], example["claim"]
    yield from generated()


# Of the sets whose every claim takes minutes, one claim in so many is decided by `make test-slow`.
SAMPLED = {"fever_dev": 15, "summedits": 12}


def name_of(path: Path) -> str:
    return path.name.partition(".")[0]


def labelled(path: Path, *, every: int = 1) -> Iterator[tuple[str, list[str], str]]:
    """Set, context and claim of a labelled set, or of one in so many of its claims."""
    name = name_of(path) if every == 1 else f"{name_of(path)}, one in {every}"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, islice(lines, 0, None, every)):
            yield name, row["context"], row["claim"]


async def digests(texts: Iterable[tuple[str, list[str], str]]) -> dict[str, dict[str, object]]:
    """Of each set: how many claims got which verdict, and a digest of everything that came out."""
    judge, found = LocalJudge(), {}
    for name, rows in groupby(texts, key=lambda row: row[0]):
        digest, verdicts = blake2b(digest_size=16), Counter[str]()
        for _, context, answer in rows:
            claims = (await judge.extract_claims(answer)).claims
            decided = (await judge.verify_claims([answer, *claims], context)).verdicts
            relevance = await judge.evaluate_relevance("How long is it open?", answer)
            out = [claims, relevance.score, relevance.reasoning]
            out += [
                (
                    each.verdict,
                    each.confidence,
                    each.evidence,
                    each.supporting_chunk_ids,
                    each.reason,
                )
                for each in decided
            ]
            digest.update(json.dumps(out).encode())
            verdicts.update(each.verdict for each in decided)
        found[name] = {**dict(sorted(verdicts.items())), "digest": digest.hexdigest()}
    return found


async def main() -> None:
    judge, lines = LocalJudge(), []
    for line in EXAMPLES.read_text("utf-8").splitlines():
        example = json.loads(line)
        decided = await judge.verify_claim(example["claim"], [example["context"]])
        example |= {"verdict": decided.verdict, "confidence": decided.confidence}
        lines.append(json.dumps(example, ensure_ascii=False) + "\n")
    EXAMPLES.write_text("".join(lines), encoding="utf-8")
    found = await digests(made_here())
    for path in LABELLED:
        found |= await digests(labelled(path))
        if every := SAMPLED.get(name_of(path)):
            found |= await digests(labelled(path, every=every))
    known = json.loads(DIGESTS.read_text("utf-8")) if DIGESTS.exists() else {}
    DIGESTS.write_text(json.dumps(known | found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
