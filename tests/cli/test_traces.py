"""`ragaliq evaluate` and `estimate` on a file of traces."""

import json
import sys

import pytest

QUESTION, ANSWER = "When does it open?", "The shop opens at 9."


def span(span_id, kind, parent="", **attributes):
    held = {"openinference.span.kind": kind}
    held |= {name.replace("__", "."): value for name, value in attributes.items()}
    return {
        "traceId": "a" * 32,
        "spanId": span_id * 16,
        "parentSpanId": parent * 16,
        "name": "support",
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "9",
        "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in held.items()],
    }


def run(number, answer=ANSWER, **attributes):
    """A run whose span ids are made of a digit and the letter after it."""
    inner = "abcdef"[number]
    return [
        span(str(number), "CHAIN", input__value=QUESTION, output__value=answer, **attributes),
        span(inner, "RETRIEVER", str(number), **{"retrieval.documents.0.document.content": ANSWER}),
    ]


@pytest.fixture
def traces(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))  # functions may be named by their module

    def write(*spans):
        path = tmp_path / "traces.otlp.json"
        path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
        return path

    return write


def test_results_speak_of_the_original_span_and_what_is_left_out_is_said(ragaliq, traces, records):
    path = traces(*run(1), *run(2, "__REDACTED__"), span("9", "LLM"))
    done = ragaliq("evaluate", path, "--metrics", "faithfulness", "--out", "results.jsonl")

    assert "faithfulness  1.00" in done.stdout
    assert "1 content_hidden: question, context or answer was kept out" in done.stderr
    assert "1 not_rag: the spans show no search" in done.stderr
    (record,) = records()
    assert record["run"]["run_id"] == "a" * 32 + "-" + "1" * 16
    assert record["run"]["pipeline"] == "support"
    assert record["run"]["target"]["trace_id"] == "a" * 32
    assert record["run"]["target"]["span_id"] == "1" * 16


def test_the_attributes_that_hold_what_counts_can_be_named(ragaliq, traces, records):
    path = traces(*run(1, "no", app__answer="The shop opens at 9. Parrots juggle lanterns."))
    field = ("--field", "response=app.answer")
    ragaliq("evaluate", path, *field, "--metrics", "faithfulness", "--out", "results.jsonl")

    (record,) = records()
    assert record["results"]["faithfulness"]["score"] == 0.5


def test_an_estimate_counts_the_same_cases(ragaliq, traces):
    done = ragaliq("estimate", traces(*run(1), span("9", "LLM")), "--judge", "local")
    assert done.stdout.startswith("1 case, ")
    assert "1 not_rag" in done.stderr


def test_explain_says_what_each_span_was_taken_for_and_what_was_found_where(ragaliq, traces):
    path = traces(*run(1), *run(2, "__REDACTED__"), span("9", "LLM"))
    done = ragaliq("traces", "explain", path)

    assert f"question, from input: {QUESTION}" in done.stdout
    assert "context, from retriever: 1 chunks" in done.stdout
    assert f"answer, from output: {ANSWER}" in done.stdout
    assert "support: retriever, openinference, 1 documents" in done.stdout
    assert "no case: content_hidden, question, context or answer was kept out" in done.stdout
    assert "looked for a retriever, a tool or a vector store" in done.stdout
    assert "1 case; no case: 1 content_hidden, 1 not_rag" in done.stdout


def own(span_id, name, parent="", **attributes):
    """A span of the application that follows no convention."""
    made = span(span_id, "", parent, **attributes)
    made["attributes"] = made["attributes"][1:]
    return made | {"name": name}


def test_explain_ends_with_what_it_could_not_read(ragaliq, traces):
    path = traces(*run(1))
    path.write_text(path.read_text() + "\n{garbage")
    done = ragaliq("traces", "explain", path, code=3)
    assert "1 case" in done.stdout
    assert "it is not JSON" in done.stderr


def test_explain_shows_spans_of_no_run_once_as_well(ragaliq, traces):
    path = traces(*run(1), own("7", "shop.pay", amount="12"))
    told = ragaliq("traces", "explain", path).stdout
    assert told.count("shop.pay") == 1
    assert "not read: it follows no known convention (amount)" in told
    assert told.count("support: ") == 2  # the run's own span, and the search


MAPPING = """
[[span]]
name = "shop.ask"
kind = "chain"
question = "shop.question"
answer = "shop.answer"

[[span]]
name = "shop.search"
kind = "retriever"
question = "shop.query"
documents = "shop.hits"
"""


def test_explain_shows_how_spans_are_read_by_a_mapping(ragaliq, traces, tmp_path):
    path = traces(
        own("1", "shop.ask", shop__question=QUESTION, shop__answer=ANSWER),
        own("2", "shop.search", "1", shop__query=QUESTION, shop__hits=json.dumps([ANSWER])),
    )
    (tmp_path / "mapping.toml").write_text(MAPPING)
    told = ragaliq("traces", "explain", path, "--mapping", tmp_path / "mapping.toml").stdout
    assert f"question, from input: {QUESTION}" in told
    assert "context, from retriever: 1 chunks" in told
    assert told.endswith("1 case\n")


def test_explain_one_trace(ragaliq, traces):
    path = traces(*run(1))
    ragaliq("traces", "explain", path, "--trace", "AA")
    done = ragaliq("traces", "explain", path, "--trace", "b", code=2)
    assert "no span of a trace whose id begins with b" in done.stderr


def test_scores_go_onto_the_spans_of_the_traces(ragaliq, traces, receiver_of):
    phoenix = receiver_of("phoenix")
    address = phoenix.url.replace("http:", "phoenix:")

    ragaliq("evaluate", traces(*run(1), *run(2)), "--metrics", "faithfulness", "--sink", address)

    kept = phoenix.kept.values()
    assert sorted((note["span_id"], note["result"]["score"]) for note in kept) == [
        ("1" * 16, 1.0),
        ("2" * 16, 1.0),
    ]


def named_documents(number):
    root, search = run(number)
    search["attributes"][1]["key"] = "retrieval.documents.0.document.id"
    search["attributes"][1]["value"] = {"stringValue": f"doc-{number}"}
    return [root, search]


def test_texts_of_documents_that_are_only_named_are_fetched(ragaliq, traces, tmp_path):
    (tmp_path / "store.py").write_text(
        f"def texts(ids):\n    return dict.fromkeys(ids, {ANSWER!r})\n"
    )
    path = traces(*named_documents(1), *named_documents(2))
    hidden = ragaliq("traces", "explain", path).stdout
    assert "1 documents, 1 without a text, which --resolve can fetch" in hidden
    done = ragaliq("evaluate", path, "--metrics", "faithfulness", "--resolve", "store:texts")
    assert "faithfulness  1.00" in done.stdout
    assert "2 cases" in ragaliq("estimate", path, "--resolve", "store:texts").stdout
    assert ANSWER in ragaliq("traces", "explain", path, "--resolve", "store:texts").stdout


NOT_RAG = "1 not_rag (the spans show no search, store or tool, or no model that answered)"


@pytest.mark.parametrize(
    ("spans", "options", "refused"),
    [
        (run(1), "--field tags=labels", (2, "name the span attribute that holds query, response,")),
        (
            run(1),
            "--field context=app.chunks",
            (3, "no span has the attribute 'app.chunks', which"),
        ),
        (run(1), "--resolve store", (2, "write it as MODULE:NAME")),
        (run(1), "--resolve no_such_store:texts", (2, "ModuleNotFoundError")),
        (run(1), "--resolve json:texts", (2, "AttributeError")),
        (run(1), "--resolve json:__doc__", (2, "must be a function")),
        ([span("9", "LLM")], "", (3, f"no run in its 1 traces can be evaluated: {NOT_RAG}")),
        (
            [span("9", "")],
            "",
            (3, "OpenLLMetry's do; describe your application's spans by --mapping"),
        ),
    ],
)
def test_what_cannot_be_evaluated_is_said_with_the_reason(ragaliq, traces, spans, options, refused):
    code, said = refused
    done = ragaliq("evaluate", traces(*spans), *options.split(), code=code)
    assert said in done.stderr
