"""Runs real applications under a handler and compares each captured case with the truth.

An application is a small function in `langchain_apps/` or `llama_index_apps/`; `@app` declares
its truth, which a person decided by reading what the model is shown.
"""

import asyncio
import importlib.util
import inspect
import json
import re
import sys
import warnings
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from ragaliq import Monitor, RAGTestCase, evaluate
from ragaliq.capture.framing import FramedRun
from ragaliq.judges.language.statements import statements
from ragaliq.testing import ScriptedJudge
from ragaliq.traces import RagaliqSpanProcessor

FOLDER = Path(__file__).parent
FRAMEWORKS = ("langchain", "llama_index")
_APPS: dict[str, dict[str, "App"]] = {}  # by framework and name
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")


class App(NamedTuple):
    """An application and the true case of its run.

    Attributes:
        run: Builds and asks the application. For LangChain it takes the configuration with the
            handler; for LlamaIndex nothing. May be a coroutine function.
        shape: Group in the figures; by default the name of the application's file.
        question: The user's question, of the run that counts: the last one with this question.
        answer: What a person reads. Several texts: an output of several fields, each of which must
            be in the case's answer. None if there must be no case.
        chunks: Each passage with an origin (retriever, tool, input, state) that led to the answer.
        prompt: Texts of the prompt that are evidence too; in the prompt part or in any chunk.
        allowed: Texts that may be evidence or not, such as a tool's "Saved.".
        absent: Texts that must be in no chunk and not in the prompt part.
        invented: Sentences of the answer that the evidence lacks.
        status: Why there is no case, as the monitor counts it; several where each is right, and
            `no run` where nothing is counted. With an answer: no case for this reason is right as
            well.
        cases: How many cases the application gives in all, with other turns and users.
        attached: The handler is attached to the process, and the configuration is empty.
    """

    name: str
    run: Any
    framework: str
    shape: str
    question: str = ""
    answer: str | tuple[str, ...] | None = None
    chunks: tuple[str, ...] = ()
    prompt: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    invented: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    cases: int = 1
    attached: bool = False


class Case(NamedTuple):
    """Question, answer and evidence of a run."""

    question: str
    answer: str
    chunks: list[str]
    prompt: str


class Observed(NamedTuple):
    """Cases of an application's runs, and why others gave none.

    Attributes:
        traces: What each trace's spans hold, where spans were read.
        is_framed: Whether the application framed the run by hand, which leaves no span.
    """

    cases: list[Case]
    reasons: dict[str, int]
    traces: "tuple[Trace, ...] | None" = None
    is_framed: bool = False


class Trace(NamedTuple):
    """Contents of the spans of a trace.

    Attributes:
        texts: The words of each attribute.
        lines: The words of each of their lines.
        shown: The words of the attributes of other spans than models'.
        parts: `a search` and `a model` if it has a span of one.
        is_whole: Whether the SDK dropped no attribute.
    """

    texts: frozenset[str]
    lines: frozenset[str]
    shown: frozenset[str]
    parts: frozenset[str]
    is_whole: bool


class Comparison(NamedTuple):
    """How an application's case compares with its truth.

    Attributes:
        texts: How many texts are evidence in truth, and how many of them were found.
        parts: How many chunks and prompt parts the case has, and how many of them are right.
        faults: What is wrong, in words.
        reasons: Why there is no case, where there is none.
        lacking: Parts of the truth that no trace has; empty where the spans were not read.
    """

    app: App
    texts: tuple[int, int]
    parts: tuple[int, int]
    question: bool
    answer: bool
    invented: tuple[int, int]
    faults: list[str]
    reasons: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()


def app(name, **truth):
    """Declare an application and its truth; see `App`."""

    def add(run):
        path = Path(inspect.getsourcefile(getattr(run, "func", run)))
        framework = path.parent.name.removesuffix("_apps")
        status = truth.pop("status", None) or ()
        answer = truth.pop("answer", None)
        given = {
            "shape": path.stem.replace("_", " "),
            "status": (status,) if isinstance(status, str) else tuple(status),
            "answer": answer if answer is None or isinstance(answer, str) else tuple(answer),
            "cases": 0 if answer is None else 1,
            **{key: tuple(v) if isinstance(v, list) else v for key, v in truth.items()},
        }
        made = App(name=name, run=run, framework=framework, **given)
        known = _APPS.setdefault(framework, {})
        assert name not in known, f"two applications are named {name!r}"
        assert made.answer is not None or made.status, f"{name}: give an answer or a status"
        _assert_consistent(made)
        known[name] = made
        return run

    return add


def applications(framework):
    """The applications of a framework, by name."""
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    # The applications import `app` from the module of this name.
    assert sys.modules.setdefault("harness", sys.modules[__name__]) is sys.modules[__name__]
    if framework not in _APPS:
        for path in sorted((FOLDER / f"{framework}_apps").glob("*.py")):
            spec = importlib.util.spec_from_file_location(f"{framework}_apps_{path.stem}", path)
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module  # where annotations are looked up
            spec.loader.exec_module(module)
    return _APPS.get(framework, {})


def words(text):
    """The words of a text; where a language does not separate them, its characters."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def contains(text, part):
    """Tell whether a text has the words of a part in their order."""
    return words(part) in words(text)


# --- running --------------------------------------------------------------------------------------


def observe(application, door="handler"):
    """Run an application under the handler of its framework, or where its spans are read."""
    results, spans, frames = [], [], []
    follow = partial(_spans, spans, frames) if door == "spans" else _FOLLOWED[application.framework]
    monitor = Monitor(judge=ScriptedJudge(), on_result=results.append)
    try:
        with warnings.catch_warnings(), follow(monitor, application) as given:
            warnings.simplefilter("ignore")  # old ways that people still use
            # In a context of its own, or searches of other applications would be found again.
            copy_context().run(call, application.run, *given)
        assert monitor.flush(60)
        stats = monitor.stats()
    finally:
        monitor.close(5)
    ended = sorted(results, key=lambda result: result.run.ended_at)
    reasons = {k: v for k, v in stats.outcomes.items() if k == "not_rag"} | stats.incomplete
    return Observed(
        [case_of(result.case) for result in ended],
        {k: v for k, v in reasons.items() if v},
        _traces(spans) if door == "spans" else None,
        bool(frames),
    )


@contextmanager
def _spans(ended, frames, monitor, application):
    from openinference.instrumentation.langchain import LangChainInstrumentor
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.trace import SpanKind

    provider, processor = TracerProvider(), RagaliqSpanProcessor(monitor)
    provider.add_span_processor(processor)
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    is_langchain = application.framework == "langchain"
    instrumentor = LangChainInstrumentor() if is_langchain else LlamaIndexInstrumentor()
    instrumentor.instrument(tracer_provider=provider, skip_dep_check=True)
    tracer = provider.get_tracer("opentelemetry.instrumentation.fastapi")
    try:
        with ExitStack() as request:
            request.enter_context(patch.object(FramedRun, "ended", _noted(frames)))
            if application.cases <= 1:  # several would be one request
                span = tracer.start_as_current_span("POST /ask", kind=SpanKind.SERVER)
                request.enter_context(span)
            yield ({},) if is_langchain else ()
    finally:
        instrumentor.uninstrument()
        processor.force_flush()
        ended += exporter.get_finished_spans()
        provider.shutdown()
    assert processor.errors == 0, f"{application.name}: a span could not be handled"


def _noted(frames):
    def ended(frame, error=None):
        frames.append(frame)

    return ended


_PARTS = {
    **dict.fromkeys(("RETRIEVER", "TOOL", "RERANKER"), "a search"),
    "LLM": "a model",
}


def _traces(spans):
    """Contents of the spans of each trace."""
    traces = {}
    for span in spans:
        traces.setdefault(span.context.trace_id, []).append(span)
    return tuple(map(_trace, traces.values()))


def _trace(spans):
    kinds = [_PARTS.get(span.attributes.get("openinference.span.kind")) for span in spans]
    held = [list(map(_plain, _values(span))) for span in spans]
    others = [texts for kind, texts in zip(kinds, held, strict=True) if kind != "a model"]
    lines = {line for texts in held for text in texts for line in (text, *text.splitlines())}
    return Trace(
        texts=frozenset(words(text) for texts in held for text in texts),
        lines=frozenset(map(words, lines)),
        shown=frozenset(words(text) for texts in others for text in texts),
        parts=frozenset(filter(None, kinds)),
        is_whole=not any(span.dropped_attributes for span in spans),
    )


def _values(span):
    for attributes in (span.attributes, *(event.attributes for event in span.events)):
        yield from attributes.values()


def _plain(value):
    """A value's texts, JSON in them decoded; what Python writes of an object stays as it is."""
    if isinstance(value, str):
        try:
            held = json.loads(value)
        except ValueError:
            return value.replace("\\n", "\n")
        return _plain(held) if isinstance(held, dict | list) else value
    if isinstance(value, dict):
        return "\n".join(map(_plain, value.values()))
    if isinstance(value, list | tuple):
        return "\n".join(map(_plain, value))
    return str(value)


def call(run, *given):
    """Run an application, synchronous or not."""
    if inspect.iscoroutinefunction(run):
        asyncio.run(run(*given))
        return
    # LlamaIndex's synchronous calls make an event loop where there is none, and leave it open.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        run(*given)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


@contextmanager
def _langchain(monitor, application):
    from langchain_ragaliq import RagaliqCallbackHandler, attach, detach

    handler = RagaliqCallbackHandler(monitor)
    if application.attached:
        attach(handler)
    try:
        yield ({} if application.attached else {"callbacks": [handler]},)
    finally:
        detach()
    assert handler.errors == 0, f"{application.name}: the handler could not handle an event"


@contextmanager
def _llama_index(monitor, application):
    from llama_index.evaluation.ragaliq import attach, detach

    handler = attach(monitor)
    try:
        yield ()
    finally:
        detach()
    assert handler.errors == 0, f"{application.name}: the handler could not handle an event"


_FOLLOWED = {"langchain": _langchain, "llama_index": _llama_index}


def case_of(case):
    """What is compared of a case."""
    # What users stated, and what earlier answers were made from, is evidence of its own kind.
    earlier = [
        text
        for turn in case.history
        for text in (*turn.context_texts, *(_stated(turn.text) if turn.role == "user" else ()))
    ]
    prompt = "\n".join([case.prompt_context, *earlier]).strip()
    return Case(case.query, case.response, list(case.context_texts), prompt)


def _stated(text):
    return [text[start:end] for start, end in statements(text)]


# --- comparing ------------------------------------------------------------------------------------


def compare(application, observed):
    """Compare the case of an application with its truth."""
    compared = _compared(application, observed)
    return compared._replace(
        reasons=() if observed.cases else tuple(observed.reasons),
        lacking=_lacking(application, observed) if compared.faults else (),
    )


def _lacking(application, observed):
    """Parts of the truth that are not in the trace that has most of it.

    The question must be a line of its own: no one can tell it from an instruction before it. Where
    no case was made the trace must have a search, too: a model's call with texts in its prompt is
    not known to answer from them, and rightly counted `not_rag`.
    """
    if observed.traces is None or application.answer is None:
        return ()
    lacking = [tuple(_lacking_in(trace, application, observed)) for trace in observed.traces]
    return min(lacking, key=len, default=("any span",))


def _lacking_in(trace, application, observed):
    answer, asked = application.answer, words(application.question)
    answers = answer if isinstance(answer, tuple) else (answer,)
    for text in (*answers, *application.chunks, *application.prompt):
        if not _holds(trace.texts, text):
            yield text
    if trace.lines.isdisjoint({asked, f" question{asked}", f" query{asked}"}):
        yield f"{application.question} (in a line of its own)"
    if not observed.cases:
        yield from {"a search", "a model"} - trace.parts
    if not trace.is_whole:
        yield "attributes that the SDK dropped"
    if observed.is_framed:
        yield "the frame, which the application made by hand"


def _holds(texts, part):
    return any(words(part) in text for text in texts)


def _compared(application, observed):
    if application.answer is None or (application.status and not observed.cases):
        return _without_case(application, observed)
    faults = []
    if len(observed.cases) != application.cases:
        faults.append(f"cases: {len(observed.cases)}, not {application.cases}{_said(observed)}")
    case = _counting_case(application, observed)
    if case is None:
        expected = len(application.chunks) + len(application.prompt)
        planted = len(application.invented)
        return Comparison(application, (expected, 0), (0, 0), False, False, (planted, 0), faults)
    is_question = words(case.question) == words(application.question)
    if not is_question:
        faults.append(f"question: {case.question!r}")
    is_answer = _is_answer(application.answer, case.answer)
    if not is_answer:
        faults.append(f"answer: {case.answer!r}")
    texts, missing = _found(application, case, observed.traces)
    parts, extra = _right_parts(application, case)
    supported = _supported(application, case)
    faults += [*missing, *extra, *(f"supported although invented: {each!r}" for each in supported)]
    invented = len(application.invented), len(supported)
    return Comparison(application, texts, parts, is_question, is_answer, invented, faults)


# Spans say less: a call that is no run has spans all the same, and a stream that is given up ends
# without a text, or its span never ends.
_SPANS_SAY = {
    "not_rag": ("no run",),
    "answer_streamed": ("truncated",),
    "shutdown": ("cancelled", "truncated"),
}


def _without_case(application, observed):
    faults = [f"case: {case!r}" for case in observed.cases]
    reasons = set(observed.reasons or {"no run"})
    if observed.traces is not None:
        reasons |= {said for reason in reasons for said in _SPANS_SAY.get(reason, ())}
    if not observed.cases and reasons.isdisjoint(application.status):
        faults.append(f"reason: {observed.reasons}, not {application.status}")
    is_right = not observed.cases
    return Comparison(application, (0, 0), (0, 0), is_right, is_right, (0, 0), faults)


def _said(observed):
    return f" ({observed.reasons})" if observed.reasons else ""


def _counting_case(application, observed):
    asked = words(application.question)
    same = [case for case in observed.cases if words(case.question) == asked]
    return (same or observed.cases or [None])[-1]


def _is_answer(answer, given):
    if isinstance(answer, tuple):
        return all(contains(given, part) for part in answer)
    return " ".join(answer.split()) == " ".join(given.split())


def _found(application, case, traces=None):
    chunks = [*case.chunks, "\n".join(case.chunks)]
    missing = [
        f"missing chunk: {text!r}"
        for text in application.chunks
        if not any(contains(chunk, text) for chunk in chunks)
        # Only a model's prompt has it: no span says that it is a document.
        and not (
            traces is not None
            and contains(case.prompt, text)
            and not any(_holds(trace.shown, text) for trace in traces)
        )
    ]
    missing += [
        f"missing in the prompt: {text!r}"
        for text in application.prompt
        if not any(contains(part, text) for part in [*chunks, case.prompt])
    ]
    expected = len(application.chunks) + len(application.prompt)
    return (expected, expected - len(missing)), missing


def _right_parts(application, case):
    truths = [*application.chunks, *application.prompt, *application.allowed]
    absent = _absent(application)
    faults, wrong = [], 0
    for place, chunk in enumerate(case.chunks):
        found = [f"extra chunk: {chunk!r}"] * (not any(_overlaps(chunk, text) for text in truths))
        found += [f"chunk twice: {chunk!r}"] * (chunk in case.chunks[:place])
        found += [f"in a chunk: {text!r}" for text in absent if contains(chunk, text)]
        wrong += bool(found)
        faults += found
    in_prompt, asked = absent, application.question
    if len(words(asked).split()) >= 4 and not any(contains(text, asked) for text in truths):
        in_prompt = [*absent, asked]
    found = [f"in the prompt part: {text!r}" for text in in_prompt if contains(case.prompt, text)]
    parts = len(case.chunks) + bool(case.prompt)
    return (parts, parts - wrong - bool(found)), [*faults, *found]


def _overlaps(chunk, text):
    return contains(chunk, text) or contains(text, chunk)


def _absent(application):
    """Texts that must not be evidence: as declared, inventions, and the answer if it is none."""
    answer = application.answer
    truths = [*application.chunks, *application.prompt, *application.allowed]
    absent = [*application.absent, *application.invented]
    if isinstance(answer, str) and not any(contains(text, answer) for text in truths):
        return [*absent, answer]
    return absent


def _assert_consistent(application):
    truths = [*application.chunks, *application.prompt]
    for text in application.absent:
        clash = [truth for truth in truths if contains(truth, text)]
        assert not clash, f"{application.name}: {text!r} is absent and evidence"
    answer = application.answer if isinstance(application.answer, tuple) else [application.answer]
    for text in application.invented:
        said = any(contains(part, text) for part in answer)
        assert said, f"{application.name}: the answer lacks the invention {text!r}"


def _supported(application, case):
    """Inventions that the embedded judge takes for supported by the captured evidence.

    One that the true evidence supports as well is the judge's fault, not the capture's.
    """
    if not application.invented:
        return []
    truth = RAGTestCase(
        query=application.question,
        context=[*application.chunks, *application.prompt],
        response=case.answer,
    )
    context = [*case.chunks, *([case.prompt] if case.prompt else [])]
    captured = RAGTestCase(query=case.question, context=context, response=case.answer)
    run = evaluate([captured, truth], judge="local", metrics=["faithfulness"])
    found, control = (_supported_claims(result) for result in run)
    return [
        text
        for text in application.invented
        if any(_overlaps(claim, text) for claim in found)
        and not any(_overlaps(claim, text) for claim in control)
    ]


def _supported_claims(result):
    claims = result.results["faithfulness"].claims or ()
    return [claim.claim for claim in claims if str(claim.verdict).endswith("SUPPORTED")]
