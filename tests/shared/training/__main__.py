"""Train the embedded judge and print its quality on data it was not trained on.

    python -m training DATA_DIR

reads `DATA_DIR/<set>.jsonl.gz` (context, claim, label), prints AUROC and balanced accuracy of each
set with its family excluded from word frequencies, weights and threshold, next to plain
idf-weighted recall, and writes the parameters used by `LocalJudge` with these figures
(`--dry-run` does not), and the tables of the page of benchmarks (`--page`). The same data
give the same files, byte for byte.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from ragaliq.judges import local
from ragaliq.judges.local.verdict import FOLDER, MODEL_FILE, WORDS_FILE, Parameters
from training.data import count_words, read_data
from training.figures import (
    measure_families,
    record,
    reproduce,
    tables,
    write_tables,
)
from training.fitting import train

FIGURES_FILE = "figures.json"
_SHIPPED = Path(local.__file__).parent / FOLDER


def write_parameters(folder: Path, parameters: Parameters) -> None:
    """Write what `LocalJudge` loads."""
    by_count: dict[int, list[str]] = {}
    for word, count in parameters.frequencies.counts.items():
        by_count.setdefault(count, []).append(word)
    stored = {
        "documents": parameters.frequencies.documents,
        "words": {str(count): " ".join(by_count[count]) for count in sorted(by_count)},
    }
    folder.mkdir(exist_ok=True)
    text = json.dumps(stored, ensure_ascii=False, separators=(",", ":"))
    # Without a time stamp, so that training again gives the same file.
    (folder / WORDS_FILE).write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))
    model = {"intercept": parameters.intercept, "weights": parameters.weights._asdict()}
    (folder / MODEL_FILE).write_text(json.dumps(model, indent=2) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the recipe from the command line."""
    parser = argparse.ArgumentParser(prog="python -m training")
    parser.add_argument("data", type=Path, help="folder with <set>.jsonl.gz")
    parser.add_argument("--dry-run", action="store_true", help="measure only, write nothing")
    parser.add_argument("--out", type=Path, default=_SHIPPED, help="folder of the parameters")
    parser.add_argument("--page", type=Path, help="Markdown file whose tables are written too")
    options = parser.parse_args(arguments)
    data = read_data(options.data)
    figures = measure_families(data)
    sys.stdout.write(tables(figures))
    parameters, _ = train(data, tuple(data), count_words(data, tuple(data)))
    sys.stdout.write(f"intercept {parameters.intercept}  {parameters.weights}\n")
    if not options.dry_run:
        write_parameters(options.out, parameters)
        shipped = {name: reproduce(rows, parameters) for name, rows in data.items()}
        text = json.dumps(record(figures, shipped, options.out), indent=1) + "\n"
        (options.out / FIGURES_FILE).write_text(text, encoding="utf-8")
        if options.page:
            write_tables(options.page, tables(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
