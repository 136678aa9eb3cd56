"""Print how many of our functions one answer passes through, and in how many files.

`python tests/benchmarks/functions_on_the_way.py` counts them for a LangChain chain that is scored
live, for `ragaliq evaluate`, and for `evaluate_async`; all with the embedded judge on the thread.
Loading is left out: everything runs once before it is counted.
"""

import asyncio
import contextlib
import io
import os
import sys
import tempfile
import threading
from pathlib import Path

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import langchain_ragaliq
import ragaliq
from ragaliq import RAGTestCase, evaluate_async
from ragaliq.cli import main
from ragaliq.live.runtime import RUNTIME

OURS = tuple(str(Path(module.__file__).parent) for module in (ragaliq, langchain_ragaliq))
CHUNK = "Refunds are paid within five working days."
ANSWER = f"{CHUNK} They come in cash."
QUESTION = "How long do refunds take?"


class Passed:
    """The functions that are called while it is on, in every thread."""

    def __init__(self):
        self.functions = set()

    def __call__(self, frame, event, _):
        code = frame.f_code
        # Comprehensions and lambdas belong to the function they stand in.
        if event == "call" and code.co_filename.startswith(OURS) and code.co_name[0] != "<":
            self.functions.add((code.co_filename, code.co_qualname))

    @contextlib.contextmanager
    def counting(self):
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def __str__(self):
        return (
            f"{len(self.functions)} functions in {len({file for file, _ in self.functions})} files"
        )


def live_chain(passed):
    chain = (
        {
            "context": RunnableLambda(lambda _: [Document(page_content=CHUNK)]),
            "question": RunnablePassthrough(),
        }
        | ChatPromptTemplate.from_template("Answer from {context}: {question}")
        | FakeListChatModel(responses=[ANSWER])
        | StrOutputParser()
    )
    handler = langchain_ragaliq.RagaliqCallbackHandler(
        judge="local", executor="thread", metrics=["faithfulness"]
    )
    RUNTIME.thread.stop(5.0)
    with passed.counting():
        # The runtime's thread starts again with the first run, and so is counted.
        chain.invoke(QUESTION, config={"callbacks": [handler]})
        assert handler.monitor.flush(30)
    handler.monitor.close(5)


def command(passed):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "answers.csv")
        path.write_text(f"question,context,answer\n{QUESTION},{CHUNK},{ANSWER}\n")
        out = Path(folder, "results.jsonl")
        with (
            passed.counting(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.suppress(SystemExit),
        ):
            sys.argv = ["ragaliq", "evaluate", str(path), "--judge", "local", "--out", str(out)]
            main()
        assert out.exists()


def library(passed):
    case = RAGTestCase(query=QUESTION, context=[CHUNK], response=ANSWER)
    with passed.counting():
        asyncio.run(evaluate_async([case], judge="local", metrics=["faithfulness"]))


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "100")
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
    trace.set_tracer_provider(provider)
    verbose = "-v" in sys.argv
    for name, way in (
        ("LangChain chain end -> verdict -> span", live_chain),
        ("ragaliq evaluate file.csv --judge local", command),
        ("evaluate_async([case], judge=...)", library),
    ):
        way(Passed())
        passed = Passed()
        way(passed)
        sys.stdout.write(f"{name}: {passed}\n")
        if verbose:
            for function in sorted(passed.functions):
                sys.stdout.write(f"    {' '.join(function)}\n")
