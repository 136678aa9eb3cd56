"""An application that has its own names for spans and attributes says so in a mapping."""

import json

import pytest
from hand_written import ANSWER, QUESTION, TEXTS, model, span, triple

from ragaliq import ConfigurationError
from ragaliq.datasets import read_cases
from ragaliq.traces import cases_of_trace, read_mapping

MAPPING = """
[[span]]
name = "shop.ask"
kind = "chain"
question = "shop.question"
answer = "shop.answer"

[[span]]
attribute = "shop.step"
equals = "search"
kind = "retriever"
question = "shop.query"
documents = "shop.hits"

[[span]]
name = "llm.*"
kind = "model"
question = "shop.prompt"
answer = "shop.reply"
"""
HITS = json.dumps([{"id": f"d{n}", "text": text} for n, text in enumerate(TEXTS)])
PROMPT = f"Answer from: {' '.join(TEXTS)} {QUESTION}"
STEPS = {
    "find": {"shop.step": "search", "shop.query": QUESTION, "shop.hits": HITS},
    "llm.call": {"shop.prompt": PROMPT, "shop.reply": ANSWER},
}
ASKED = {"shop.question": QUESTION, "shop.answer": ANSWER}


@pytest.fixture
def rules(written):
    return lambda text=MAPPING: read_mapping(written("mapping.toml", text))


def test_the_application_s_own_names(rules):
    root = span(name="shop.ask", attributes=ASKED)
    spans = [
        span(name=name, parent=root, at=(10 * n, 10 * n + 5), attributes=held)
        for n, (name, held) in enumerate(STEPS.items(), start=1)
    ]
    (found,) = cases_of_trace([root, *spans], mapping=rules())
    assert triple(found) == (QUESTION, TEXTS, ANSWER)
    assert [passage.id for passage in found.log.found_context.passages] == ["d0", "d1"]
    assert found.log.sources.context == "prompt"


def test_all_of_it_on_one_span(rules):
    held = {**ASKED, "shop.hits": HITS}
    mapping = rules(MAPPING.split("\n\n", maxsplit=1)[0] + '\ndocuments = "shop.hits"\n')
    (found,) = cases_of_trace([span(name="shop.ask", attributes=held)], mapping=mapping)
    assert triple(found) == (QUESTION, TEXTS, ANSWER)


def test_it_goes_before_what_a_convention_says(rules):
    root = span(name="shop.ask", attributes=ASKED)
    told = rules(
        '[[span]]\nname = "step"\nkind = "tool"\nanswer = "llm.output_messages.0.message.content"'
    )
    (found,) = cases_of_trace([root, model(root)], mapping=[*told, *rules()])
    assert [step.kind.value for step in found.steps] == ["CHAIN", "TOOL"]


def test_live_likewise(following, rules):
    each = following(mapping=rules())
    with each.app.span("shop.ask", **ASKED):
        for name, held in STEPS.items():
            with each.app.span(name, **held):
                pass
    (case,) = each.cases()
    assert (case.query, case.context_texts, case.response) == (QUESTION, TEXTS, ANSWER)


def test_a_mapping_is_for_traces(written):
    rows = written("rows.jsonl", json.dumps({"query": "q", "response": "a", "context": []}))
    with pytest.raises(ConfigurationError, match="a mapping is for traces"):
        read_cases(rows, mapping=written("mapping.toml", MAPPING))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[span]", "it is not TOML"),
        ("span = " + "[" * 100_000, "it is not TOML"),
        ("name = 1", "write each rule as"),
        ("[[span]]\nkind = 'chain'", "span 1: Value error, it needs a name or an attribute"),
        ("[[span]]\nname = 'a'\nkind = 'llm'", "span 1, kind: Input should be"),
        ("[[span]]\nname = 'a'\nquery = 'b'", "span 1, query: Extra inputs"),
    ],
)
def test_a_wrong_mapping_is_refused_with_its_place(text, problem, rules):
    with pytest.raises(ConfigurationError, match=problem):
        rules(text)


@pytest.mark.parametrize(
    ("name", "attributes", "rule"),
    [
        ("POST /ask/[id]", {}, 'name = "POST /ask/[id]"'),
        ("ask? 7", {}, 'name = "ask? *"'),
        ("x", {"shop.cached": True}, 'attribute = "shop.cached"\nequals = "true"'),
        ("x", {"shop.top_k": 4}, 'attribute = "shop.top_k"\nequals = "4"'),
    ],
)
def test_names_and_values_are_taken_as_they_stand(name, attributes, rule, rules):
    (held,) = rules(f"[[span]]\n{rule}\n")
    assert held.covers(name, attributes)
    assert not held.covers("POST /ask/i", {"shop.cached": False, "shop.top_k": 5})
    assert not held.covers("ask! 7", {})
