"""The comparison of a captured case with the truth finds each kind of fault."""

import pytest
from harness import App, Case, Observed, Trace, compare, contains, words
from rules import without

from ragaliq.capture import phrases

TRUTH = App(
    name="a lamp",
    run=None,
    framework="langchain",
    shape="lamps",
    question="What does the brass lamp cost?",
    answer="The brass lamp costs 289 EUR. It is waterproof.",
    chunks=("The Boreas is a floor lamp of brushed brass.",),
    prompt=("Price: 289 EUR",),
    absent=("About three hundred, I would guess.",),
    invented=("It is waterproof.",),
)
RIGHT = Case(TRUTH.question, TRUTH.answer, list(TRUTH.chunks), "Offers. Price: 289 EUR")


def faults(case, truth=TRUTH):
    return compare(truth, Observed([case], {})).faults


def test_a_right_case_has_no_faults():
    compared = compare(TRUTH, Observed([RIGHT], {}))
    assert compared.faults == []
    assert (compared.texts, compared.parts, compared.invented) == ((2, 2), (2, 2), (1, 0))


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"question": "brass lamp price"}, "question"),
        ({"answer": "It is waterproof."}, "answer"),
        ({"chunks": []}, "missing chunk"),
        ({"prompt": "Offers."}, "missing in the prompt"),
        ({"chunks": [*TRUTH.chunks, "Dogs are welcome here."]}, "extra chunk"),
        ({"chunks": [*TRUTH.chunks, *TRUTH.chunks]}, "chunk twice"),
        ({"chunks": [f"{TRUTH.chunks[0]} {TRUTH.absent[0]}"]}, "in a chunk"),
        ({"prompt": f"{RIGHT.prompt}\n{TRUTH.absent[0]}"}, "in the prompt part"),
        ({"prompt": f"{RIGHT.prompt}\n{TRUTH.question}"}, "in the prompt part"),
        ({"prompt": f"{RIGHT.prompt}\n{TRUTH.answer}"}, "supported although invented"),
    ],
)
def test_each_kind_of_fault_is_found(changed, fault):
    assert any(each.startswith(fault) for each in faults(RIGHT._replace(**changed)))


def test_a_missing_case_is_a_fault_and_so_is_another_case():
    assert compare(TRUTH, Observed([], {"no_answer": 1})).faults
    assert compare(TRUTH, Observed([RIGHT, RIGHT], {})).faults


def test_a_case_where_there_must_be_none_is_a_fault_and_so_is_another_reason():
    truth = App(name="a call", run=None, framework="langchain", shape="", status=("not_rag",))
    assert compare(truth, Observed([], {"not_rag": 1})).faults == []
    assert compare(truth, Observed([], {"no_answer": 1})).faults
    assert faults(RIGHT, truth)


def test_of_several_fields_each_must_be_in_the_answer():
    truth = TRUTH._replace(answer=("brass", "289"), invented=())
    assert faults(RIGHT._replace(answer='{"of": "brass", "price": 289}'), truth) == []
    assert faults(RIGHT._replace(answer="brass"), truth)


def test_texts_contain_words_and_not_parts_of_words():
    assert contains("The fee: 75 EUR!", "fee 75 eur")
    assert not contains("The fees are 75 EUR.", "fee")
    assert contains("退款需要五个工作日。", "五个工作日")


def test_a_rule_is_left_out_for_a_time():
    texts = phrases.MarkedText("Refunds take five days.")
    with without("phrases.MarkedText.places"):
        assert list(texts.places("five")) == []
    assert list(texts.places("five")) == [slice(2, 3)]


def trace(*texts, shown=None, parts=("a search", "a model"), is_whole=True):
    held = frozenset(map(words, texts))
    return Trace(held, held, held if shown is None else shown, frozenset(parts), is_whole)


WHOLE = (TRUTH.question, TRUTH.answer, *TRUTH.chunks, *TRUTH.prompt)


def lacking(*traces, cases=(), **options):
    return compare(TRUTH, Observed(list(cases), {}, traces, **options)).lacking


def test_spans_lack_nothing_where_one_trace_holds_the_whole_truth():
    assert lacking(trace(), trace(*WHOLE)) == ()


@pytest.mark.parametrize("text", WHOLE)
def test_spans_lack_a_text_that_no_attribute_holds_whole(text):
    begin, end = text[:9], text[9:]
    cut = [each for each in WHOLE if each != text]
    assert len(lacking(trace(*cut, begin, end))) == 1


def test_spans_lack_a_question_that_only_stands_behind_an_instruction():
    asked = f"Translate this: {TRUTH.question}"
    assert lacking(trace(asked, *WHOLE[1:])) == (f"{TRUTH.question} (in a line of its own)",)
    assert lacking(trace(f"Question: {TRUTH.question}", *WHOLE[1:])) == ()


def test_spans_without_a_case_lack_a_search_or_a_model():
    assert lacking(trace(*WHOLE, parts=["a model"])) == ("a search",)
    wrong = RIGHT._replace(chunks=[])
    assert lacking(trace(*WHOLE, parts=["a model"]), cases=[wrong]) == ()


def test_spans_lack_dropped_attributes_and_frames_made_by_hand():
    assert lacking(trace(*WHOLE, is_whole=False)) == ("attributes that the SDK dropped",)
    framed = lacking(trace(*WHOLE), is_framed=True)
    assert framed == ("the frame, which the application made by hand",)


def test_right_cases_lack_nothing():
    assert lacking(trace(), cases=[RIGHT]) == ()


def test_a_chunk_that_only_a_models_prompt_holds_may_be_in_the_prompt_part():
    prompt = f"{TRUTH.chunks[0]} {RIGHT.prompt}"
    case = RIGHT._replace(chunks=[], prompt=prompt)
    compared = compare(TRUTH, Observed([case], {}, (trace(prompt, shown=()),)))
    assert compared.faults == []
    assert compare(TRUTH, Observed([case], {}, (trace(prompt),))).faults
    assert compare(TRUTH, Observed([case], {})).faults
