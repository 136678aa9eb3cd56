"""Record what the shipped parameters decide on the claims of `examples.jsonl`.

python tests/judges/local/record_examples.py

is to be run, and what it changes to be looked at, after the judge was trained again.
"""

import json
from pathlib import Path

from ragaliq.judges.local.verdict import WordingVerifier

FILE = Path(__file__).with_name("examples.jsonl")


def main() -> None:
    lines = []
    for line in FILE.read_text(encoding="utf-8").splitlines():
        example = json.loads(line)
        decision = WordingVerifier([example["context"]]).decide(example["claim"])
        example |= {"verdict": decision.verdict, "confidence": decision.confidence}
        lines.append(json.dumps(example, ensure_ascii=False) + "\n")
    FILE.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
