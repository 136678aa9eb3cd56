"""The pictures in the docs, of the real thing: `make pictures` takes them again."""

import io
import os
import subprocess
import sys
from html import escape
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from ragaliq import evaluate
from ragaliq.datasets import read_cases
from ragaliq.reports import write_report

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[3]
IMAGES = ROOT / "docs/pages/images"
MOST_BYTES = 200_000
PAID = "Refunds are paid within five working days."
ANSWERS = f"""\
question,context,answer
How long do refunds take?,{PAID},{PAID} They come in cash.
When does the shop open?,The shop opens at 9 on weekdays.,The shop opens at 9 on weekdays.
How heavy is the lamp?,The Aurora lamp weighs 310 grams.,The Aurora lamp weighs 410 grams.
"""
COMMAND = "ragaliq evaluate answers.csv --metrics faithfulness --out report.html"
CELL = """\
from ragaliq import evaluate
from ragaliq.datasets import read_cases

run = evaluate(read_cases("answers.csv"), metrics=["faithfulness"])
run"""
HANDBOOK = """
import sys
folder, store = sys.argv[1:]
sys.path.insert(0, folder)
from handbook.questions import load_questions
from handbook.session import load_handbook
from langchain_demo import application
from ragaliq import Monitor

questions = load_questions()
monitor = Monitor(
    judge="local", metrics=["faithfulness", "hallucination"], sinks=[store], capture_content=True
)
with monitor, application(load_handbook(questions), monitor) as ask:
    for each in questions:
        ask(each.question)
    monitor.flush(60)
"""


@pytest.fixture
def answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answers.csv").write_text(ANSWERS)


def taken(tab, page, name, *, width, dark=False):
    """Show a page and keep its picture, as high as what is on it."""
    path = Path("page.html").resolve()
    path.write_text(page, encoding="utf-8")
    tab.shape(width=width, height=100, dark=dark)
    tab.open(path)
    height = tab.js("document.documentElement.scrollHeight")
    tab.shape(width=width, height=height, dark=dark)
    tab.picture(IMAGES / name)
    assert (IMAGES / name).stat().st_size < MOST_BYTES


def test_the_terminal(tab, answers):
    done = subprocess.run(
        [sys.executable, "-m", "ragaliq.cli", *COMMAND.split()[1:]],
        env={
            **{name: value for name, value in os.environ.items() if name != "NO_COLOR"},
            "PYTHONPATH": ":".join(sys.path),
            "FORCE_COLOR": "1",
            "COLUMNS": "100",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    console = Console(file=io.StringIO(), record=True, width=100)
    console.print(Text(f"$ {COMMAND}\n", style="bold"))
    console.print(Text.from_ansi(done.stdout))
    shown = console.export_html(
        inline_styles=True,
        code_format="<pre style='margin:0;padding:16px;background:#1e1f29;color:#e6e6e6;"
        "font:14px/1.35 monospace'>{code}</pre>",
    )
    taken(tab, f"<!doctype html><body style='margin:0'>{shown}", "terminal.png", width=900)


def test_the_notebook(tab, answers):
    shown = evaluate(read_cases("answers.csv"), metrics=["faithfulness"])._repr_html_()
    cell = (
        "<pre style='margin:0 0 12px;padding:10px;background:#f5f5f5;border:1px solid #ddd;"
        f"font:13px/1.35 monospace'>{escape(CELL)}</pre>"
    )
    body = "<!doctype html><meta charset=utf-8><body style='padding:16px;font:14px sans-serif'>"
    taken(tab, body + cell + shown, "notebook.png", width=900)


@pytest.fixture(scope="module")
def handbook(tmp_path_factory):
    """The report of the LangChain demo: its live answers, judged by the embedded judge."""
    folder = tmp_path_factory.mktemp("handbook")
    store = f"sqlite:///{folder / 'handbook.db'}"
    done = subprocess.run(
        [sys.executable, "-c", HANDBOOK, str(ROOT / "examples/demo"), store],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    page = folder / "report.html"
    write_report(store, page, title="Bicycle handbook, answers of the demo")
    return page


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_report(tab, handbook, dark):
    name = "dark" if dark else "light"
    tab.shape(width=1200, height=960, dark=dark)
    tab.open(handbook)
    tab.picture(IMAGES / f"report-scores-{name}.png")
    tab.shape(width=1200, height=840, dark=dark)
    tab.open(handbook, "#metric=faithfulness&verdict=CONTRADICTED&text=fast+charger")
    tab.js("document.getElementById('answers').scrollIntoView()")
    tab.js("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))")
    tab.picture(IMAGES / f"report-answer-{name}.png")
    for path in IMAGES.glob(f"report-*-{name}.png"):
        assert path.stat().st_size < MOST_BYTES


def test_the_plot_of_quality(tmp_path):
    store, plot = tmp_path / "month.db", IMAGES / "quality-month.svg"
    for command in (
        [str(ROOT / "examples/quality/month.py"), str(store)],
        ["-m", "ragaliq.cli", "quality", str(store), "--plot", str(plot), "--plan", "0.03"],
    ):
        done = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
