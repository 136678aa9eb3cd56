"""Question, contexts and answer named by the application, where guessing finds something else."""

import gc
import logging
import weakref

import pytest
from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from rag_parts import (
    ANSWER,
    QUESTION,
    REFUNDS,
    SHIPPING,
    BrokenRetriever,
    FixedRetriever,
    documents,
    model,
    rag_chain,
)

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import ConfigurationError

GUESSED = (QUESTION, REFUNDS, ANSWER)


def unusual(value):
    """A chain whose state nobody could guess: two texts in, two texts out."""
    return {"reply": {"text": ANSWER}, "trail": ["looked up"], "cites": list(SHIPPING)}


UNUSUAL = {"wish": QUESTION, "tenant": "a shop"}


def test_a_function_says_all_three(new_watch, invoke):
    seen = []

    def extract(inputs, outputs):
        seen.append((inputs, outputs))
        return {
            "question": inputs["wish"],
            "contexts": outputs["cites"],
            "answer": outputs["reply"]["text"],
        }

    watch = new_watch(handler={"extract": extract})
    invoke(RunnableLambda(unusual), UNUSUAL, watch.config)
    assert watch.only == (QUESTION, SHIPPING, ANSWER)
    assert seen == [(UNUSUAL, unusual(UNUSUAL))]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"question": "Really?"}, ("Really?", REFUNDS, ANSWER)),
        ({"contexts": "One."}, (QUESTION, ["One."], ANSWER)),
        ({"contexts": []}, (QUESTION, [], ANSWER)),
        ({"contexts": [{"page_content": "Two."}, Document(page_content="Three.")]},
         (QUESTION, ["Two.", "Three."], ANSWER)),
        ({"answer": {"days": 5}}, (QUESTION, REFUNDS, "days: 5")),
        ({"question": None, "answer": None}, GUESSED),
        (None, GUESSED),
    ],
)  # fmt: skip
def test_what_a_function_does_not_say_is_guessed(new_watch, said, expected):
    watch = new_watch(handler={"extract": lambda inputs, outputs: said})
    rag_chain().invoke(QUESTION, watch.config)
    assert watch.only == expected


def test_a_function_is_given_a_streams_real_inputs_and_whole_output(new_watch, stream):
    seen = []
    watch = new_watch(handler={"extract": lambda *given: seen.append(given)})
    stream(rag_chain(), QUESTION, watch.config)
    assert watch.only == GUESSED
    assert seen == [(QUESTION, ANSWER)]


def test_a_function_is_asked_about_whole_answers_only(new_watch):
    asked = []
    watch = new_watch(handler={"extract": lambda *given: asked.append(given)})
    pieces = rag_chain().stream(QUESTION, watch.config)
    next(pieces)
    pieces.close()
    with pytest.raises(ConnectionError):
        rag_chain(BrokenRetriever()).invoke(QUESTION, watch.config)
    assert watch.incomplete == {"truncated": 1, "errored": 1}
    assert asked == []


@pytest.mark.parametrize(
    ("extract", "why"),
    [
        (lambda inputs, outputs: outputs["nowhere"], "TypeError (test_overrides.py, line"),
        (lambda inputs, outputs: "an answer", "it must return a mapping, not str"),
        (lambda inputs, outputs: {"context": ["misspelt"]}, "contexts and answer, not 'context'"),
        (lambda inputs, outputs: {"contexts": 5}, "contexts: cannot read int; give a list of"),
        (lambda inputs, outputs: {"contexts": ["One.", 5]}, "cannot read a list of int and str;"),
        (lambda inputs, outputs: {"contexts": [{"body": "One."}]}, "cannot read a list of dict;"),
        (lambda inputs: {}, "TypeError (extract.py, line"),
    ],
)
def test_a_function_that_fails_is_not_felt_and_the_log_says_why_once(
    new_watch, extract, why, caplog
):
    watch = new_watch(handler={"extract": extract})
    with caplog.at_level(logging.WARNING, "ragaliq.langchain"):
        for _ in range(2):
            assert rag_chain().invoke(QUESTION, watch.config) == ANSWER
    assert watch.incomplete == {"extract_failed": 2}
    (record,) = caplog.records
    assert ANSWER not in record.getMessage()
    assert record.getMessage().startswith("extract failed: ")
    assert why in record.getMessage()


def test_a_named_context_that_cannot_be_read_is_logged_once(new_watch, caplog):
    watch = new_watch(handler={"context_key": "hits"})
    chain = RunnableLambda(lambda state: {"answer": ANSWER, "hits": [{"body": SHIPPING[0]}]})
    with caplog.at_level(logging.WARNING, "ragaliq.langchain"):
        for _ in range(2):
            chain.invoke({"question": QUESTION}, watch.config)
    (record,) = caplog.records
    assert "context_key 'hits': cannot read a list of dict; give" in record.getMessage()
    assert SHIPPING[0] not in record.getMessage()


def test_a_runs_inputs_are_let_go_with_the_run(new_watch):
    class Inputs(dict):
        """Can be referred to weakly."""

    watch = new_watch(handler={"extract": lambda inputs, outputs: None})
    inputs = Inputs(question=QUESTION)
    held = weakref.ref(inputs)
    RunnableLambda(lambda state: ANSWER).invoke(inputs, watch.config)
    assert watch.only == (QUESTION, [], ANSWER)
    del inputs
    gc.collect()
    assert held() is None


def noted():
    prompt = ChatPromptTemplate.from_messages([("system", "{notes}"), ("human", "{question}")])
    return (
        {"notes": lambda asked: SHIPPING[0], "question": RunnablePassthrough()} | prompt | model()
    )


GIVEN = {"question": QUESTION}
ANSWERING = RunnableLambda(lambda state: ANSWER)
PASSAGES = {"context_key": "passages"}
KEYS = {"question_key": "wish", "context_key": "cites", "answer_key": "reply"}


@pytest.mark.parametrize(
    ("names", "given", "texts"),
    [
        (KEYS, (RunnableLambda(unusual), UNUSUAL), SHIPPING),
        (PASSAGES, (ANSWERING, GIVEN | {"passages": list(SHIPPING)}), SHIPPING),
        (PASSAGES, (ANSWERING, GIVEN | {"passages": documents(SHIPPING)}), SHIPPING),
        ({"context_key": "notes"}, (noted(), QUESTION), SHIPPING[:1]),
    ],
    ids=["all three", "texts with the question", "documents with the question", "a variable"],
)
def test_names_of_keys(new_watch, invoke, names, given, texts):
    watch = new_watch(handler=names)
    invoke(*given, watch.config)
    assert watch.only == (QUESTION, texts, ANSWER)


def test_events_name_all_three_too(watch, invoke):
    def tell(question):
        dispatch_custom_event("ragaliq.question", {"question": "As asked?"})
        dispatch_custom_event("ragaliq.contexts", {"contexts": ["As shown."]})
        dispatch_custom_event("ragaliq.answer", "As told.")
        return question

    async def atell(question):
        await adispatch_custom_event("ragaliq.question", "As asked?")
        await adispatch_custom_event("ragaliq.contexts", ["As shown."])
        await adispatch_custom_event("ragaliq.answer", {"answer": "As told."})
        return question

    invoke(RunnableLambda(tell, afunc=atell) | rag_chain(), QUESTION, watch.config)
    assert watch.only == ("As asked?", ["As shown."], "As told.")


def test_the_function_goes_before_the_event_and_the_event_before_the_key(new_watch):
    def tell(question):
        dispatch_custom_event("ragaliq.question", "From the event.")
        dispatch_custom_event("ragaliq.answer", "From the event.")
        return {"out": "From the key.", "docs": documents(SHIPPING)}

    watch = new_watch(
        handler={
            "extract": lambda inputs, outputs: {"question": "From the function."},
            "answer_key": "out",
        }
    )
    (FixedRetriever() | RunnableLambda(tell)).invoke(QUESTION, watch.config)
    assert watch.only == ("From the function.", SHIPPING, "From the event.")


def test_an_event_of_the_wrong_kind_is_counted_and_not_felt(watch):
    watch.may_err = True

    def tell(question):
        dispatch_custom_event("ragaliq.contexts", {"contexts": 5})
        return question

    assert (RunnableLambda(tell) | rag_chain()).invoke(QUESTION, watch.config) == ANSWER
    assert watch.only == GUESSED
    assert watch.handler.errors == 1


NESTED = {"data": {"wish": QUESTION}, "lang": "en", "place": "the shop in the old town"}


def nested(value):
    return {
        "data": {"reply": ANSWER, "price": 12},
        "hits": [{"body": text} for text in SHIPPING],
        "notes": REFUNDS[:1],
    }


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            {"question_key": "data.wish", "answer_key": "data.reply", "context_key": "hits.body"},
            (QUESTION, list(SHIPPING), ANSWER),
        ),
        (
            {
                "question_key": ["ask", "data.wish"],
                "answer_key": ("data.reply", "data.price", "data.none"),
                "context_key": ["notes", "hits.body", "none"],
            },
            (QUESTION, [*REFUNDS[:1], *SHIPPING], f"data.reply: {ANSWER}\n\ndata.price: 12"),
        ),
    ],
)
def test_keys_may_be_paths_and_several(new_watch, keys, expected):
    watch = new_watch(handler=keys)
    RunnableLambda(nested).invoke(NESTED, watch.config)
    assert watch.only == expected


async def later(inputs, outputs):
    return {}


@pytest.mark.parametrize(
    "option",
    [{"extract": later}, {"extract": "path"}, {"question_key": ""}, {"context_key": ["a", 1]}],
)
def test_options_that_cannot_work_are_refused(watch, option):
    with pytest.raises(ConfigurationError, match=next(iter(option))):
        RagaliqCallbackHandler(watch.monitor, **option)


def test_an_interrupt_inside_the_function_passes_and_the_run_still_ends(new_watch):
    def interrupted(inputs, outputs):
        raise KeyboardInterrupt

    watch = new_watch(handler={"extract": interrupted})
    with pytest.raises(KeyboardInterrupt):
        RunnableLambda(unusual).invoke(UNUSUAL, watch.config)
    assert watch.incomplete == {"interrupted": 1}
