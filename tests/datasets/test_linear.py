"""Reading a file takes time in proportion to its size, whatever is in it."""

import time

import pytest

from ragaliq.datasets import read_cases
from ragaliq.errors import DatasetError

ROW = '{"query": "When?", "response": "At nine.", "context": ["It opens at nine."]}'
# How a file of `n` parts of a kind is written.
FILES = {
    "keys.json": lambda n: "[{" + ", ".join(f'"k{i}": 1' for i in range(n)) + "}]",
    "brackets.json": lambda n: "[" * n,
    "blanks.json": lambda n: "[" + " " * (20 * n) + "]",
    "rows.jsonl": lambda n: (ROW + "\n") * n,
    "keys.jsonl": lambda n: "{" + ", ".join(f'"k{i}": 1' for i in range(n)) + "}\n",
    "blank lines.jsonl": lambda n: "\n" * (20 * n),
    "columns.csv": lambda n: ",".join(f"c{i}" for i in range(n)) + "\n" + "," * n + "\n",
    "numbered.csv": lambda n: (
        "query,response,"
        + ",".join(f"context_{i}" for i in range(n))
        + "\n"
        + ",".join(["a"] * (n + 2))
        + "\n"
    ),
    "quotes.csv": lambda n: 'query,response,context\n"' + '""' * (10 * n) + '",b,c\n',
    "list in a cell.csv": lambda n: 'query,response,context\na,b,"[' + "'x' " * n + ']"\n',
    "brackets in a cell.csv": lambda n: 'query,response,context\na,b,"' + "[" * n + '"\n',
}
PARTS = 1_500
MOST = 9.0  # times as long for four times as much: 4 is linear, 16 quadratic
LEAST = 0.05  # seconds below which a difference is noise


@pytest.mark.parametrize("name", FILES)
def test_four_times_as_much_takes_about_four_times_as_long(name, tmp_path):
    path = tmp_path / name

    def seconds(parts: int) -> float:
        path.write_text(FILES[name](parts), encoding="utf-8")
        begun = time.process_time()
        try:
            for _ in read_cases(path, on_error="skip"):
                pass
        except DatasetError:
            pass
        return time.process_time() - begun

    ratios = []
    for _ in range(3):
        longer = seconds(4 * PARTS)
        if longer < LEAST:
            return
        ratios.append(longer / seconds(PARTS))
        if ratios[-1] <= MOST:
            return
    pytest.fail(f"four times as much took {min(ratios):.1f} times as long")
