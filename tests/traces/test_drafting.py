"""A first mapping for spans of products as though their conventions were not known."""

import pytest
from hand_written import QUESTION, ROOT, TEXTS, span
from test_recordings import ANSWER, JOINED, RECORDINGS, THREE
from test_recordings import QUESTION as ASKED

from ragaliq.traces import cases_of_trace, conventions, read_mapping
from ragaliq.traces.drafting import draft_mapping, toml_of
from ragaliq.traces.files import spans_in


def trulens():
    start = "ai.observability."

    def step(kind, number, parent=None, **held):
        named = {start + name.replace("__", "."): value for name, value in held.items()}
        attributes = {f"{start}span_type": kind, f"{start}app_name": "shop"} | named
        at = (number * 10, 100 - number)
        return span(parent=parent, id=f"{number}" * 16, at=at, attributes=attributes)

    return [
        step("record_root", 1, record_root__input=ASKED, record_root__output=ANSWER),
        step(
            "retrieval",
            2,
            ROOT,
            retrieval__query_text=ASKED,
            retrieval__retrieved_contexts=list(THREE),
        ),
        step("generation", 3, ROOT, call__kwargs__query=ASKED, call__return=ANSWER),
    ]


def recording(name):
    found = list(spans_in(RECORDINGS / f"{name}.otlp.json.gz"))
    return [each for each in found if each.trace_id == found[0].trace_id]


@pytest.mark.parametrize(
    ("convention", "spans", "texts"),
    [
        ("trulens", trulens(), THREE),
        ("genkit", recording("genkit-flow"), THREE),
        ("voltagent", recording("voltagent-agent"), JOINED),
    ],
)
def test_a_written_mapping_makes_a_product_right(convention, spans, texts, monkeypatch, tmp_path):
    known = tuple(each for each in conventions.CONVENTIONS if each.name != convention)
    monkeypatch.setattr(conventions, "_BY_MARK", conventions.by_mark(known))
    marks = {mark for each in known for mark in each.marks}
    monkeypatch.setattr(conventions, "MARKS", conventions.MARKS & marks)
    assert not any(found.log for found in cases_of_trace(spans))
    (path := tmp_path / "mapping.toml").write_text(toml_of(draft_mapping(spans)))
    (found,) = cases_of_trace(spans, mapping=read_mapping(path))
    log = found.log
    assert (log.query, log.response) == (ASKED, ANSWER)
    assert tuple(passage.text for passage in log.found.passages) == tuple(texts)


def test_trulens_is_known_without_one():
    (found,) = cases_of_trace(trulens())
    assert tuple(passage.text for passage in found.log.found.passages) == THREE


def test_spans_of_transport_and_spans_without_texts_get_no_rule():
    plain = [
        span(name="GET /search", attributes={"http.url": "http://shop/?q=a b"}),
        span(name="search", attributes={"hits": 3}),
    ]
    assert draft_mapping(plain) == []


def test_numbers_in_names_stand_for_any():
    asked = [
        span(name=f"ask {n}", parent=None, attributes={"question": QUESTION, "answer": TEXTS[0]})
        for n in range(3)
    ]
    (rule,) = draft_mapping(asked)
    assert (rule.name, rule.kind, rule.question, rule.answer) == (
        "ask *",
        "chain",
        "question",
        "answer",
    )
