"""Every kind of model and output gives its text as the answer."""

import json

import pytest
from langchain_core.language_models import LLM
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import (
    CommaSeparatedListOutputParser,
    JsonOutputParser,
    PydanticOutputParser,
)
from langchain_core.outputs import GenerationChunk
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from pydantic import BaseModel
from rag_parts import ANSWER, QUESTION, REFUNDS, FixedRetriever, calling, joined, model, rag_chain

from langchain_ragaliq import RagaliqCallbackHandler

EXPECTED = (QUESTION, REFUNDS, ANSWER)


class Completing(LLM):
    @property
    def _llm_type(self):
        return "completing"

    def _call(self, prompt, stop=None, run_manager=None, **kwargs):
        return ANSWER

    def _stream(self, prompt, stop=None, run_manager=None, **kwargs):
        for word in ANSWER.split(" "):
            yield GenerationChunk(text=f"{word} ")


class Reply(BaseModel):
    text: str
    sure: bool = True


def test_a_completion_model(watch, invoke):
    prompt = PromptTemplate.from_template("{context}\n{question}")
    sources = {"context": FixedRetriever() | joined, "question": RunnablePassthrough()}
    assert invoke(sources | prompt | Completing(), QUESTION, watch.config) == ANSWER
    assert watch.only == EXPECTED


def test_a_completion_model_that_streams(watch, stream):
    stream(rag_chain(llm=Completing()), QUESTION, watch.config)
    assert watch.only == (QUESTION, REFUNDS, f"{ANSWER} ")


def test_an_application_that_adds_to_the_event_of_chats_is_not_told_of_completions(
    new_watch, invoke
):
    watch, chats = new_watch(), []

    class Noting(RagaliqCallbackHandler):
        def on_chat_model_start(self, serialized, messages, **kwargs):
            chats.append(messages)
            super().on_chat_model_start(serialized, messages, **kwargs)

    handler = Noting(watch.monitor)
    for llm in (Completing(), model()):
        invoke(rag_chain(llm=llm), QUESTION, {"callbacks": [handler]})
    assert watch.triples == [EXPECTED] * 2
    assert len(chats) == 1
    assert handler.errors == 0


def test_content_blocks_are_joined_without_reasoning_and_images(watch, invoke):
    message = AIMessage(
        [
            {"type": "reasoning", "reasoning": "They mean money."},
            {"type": "text", "text": "Refunds take "},
            {"type": "image", "url": "https://example.com/a.png"},
            {"type": "text", "text": "five days."},
        ]
    )
    chain = rag_chain(llm=model(message), parser=RunnablePassthrough())
    invoke(chain, QUESTION, watch.config)
    assert watch.only == EXPECTED


def test_a_question_in_content_blocks(watch, invoke):
    human = HumanMessage(
        [{"type": "text", "text": QUESTION}, {"type": "image", "url": "https://example.com/a.png"}]
    )
    ask = RunnableLambda(lambda messages: messages[-1].text) | rag_chain()
    invoke(ask, [human], watch.config)
    invoke(RunnableLambda(lambda message: message.text) | rag_chain(), human, watch.config)
    assert watch.triples == [EXPECTED] * 2


def test_a_message_that_only_refuses_is_no_answer(watch, invoke):
    refusal = AIMessage([{"type": "refusal", "refusal": "I cannot help with that."}])
    invoke(rag_chain(llm=model(refusal), parser=RunnablePassthrough()), QUESTION, watch.config)
    assert watch.incomplete == {"no_answer": 1}


def test_an_object_is_the_text_that_a_person_reads_of_it(watch, invoke):
    reply = Reply(text=ANSWER)
    chain = rag_chain(
        llm=model(reply.model_dump_json()), parser=PydanticOutputParser(pydantic_object=Reply)
    )
    assert invoke(chain, QUESTION, watch.config) == reply
    assert watch.only == EXPECTED
    assert watch.results[0].case.sources.answer == "output.text"


@pytest.mark.parametrize("answer", [{("row", 1): ANSWER}, [ANSWER, {1: {2, ANSWER}}, {(): 1}]])
def test_an_object_that_is_no_json_is_its_text(watch, invoke, answer):
    chain = RunnablePassthrough() | rag_chain() | RunnableLambda(lambda text: {"answer": answer})
    assert invoke(chain, QUESTION, watch.config) == {"answer": answer}
    assert ANSWER in watch.only.answer


def test_an_object_that_holds_itself_is_its_text(watch, invoke):
    answer = {"text": ANSWER}
    answer["itself"] = answer
    invoke(rag_chain() | (lambda text: {"answer": answer}), QUESTION, watch.config)
    assert ANSWER in watch.only.answer


def test_pairs_beside_something_else_are_no_conversation(watch, invoke):
    odd = [("user", "Hi"), ("user",), ()]
    chain = RunnablePassthrough.assign(answer=lambda _: ANSWER, messages=lambda _: odd)
    invoke(chain, {"question": QUESTION}, watch.config)
    invoke(RunnableLambda(lambda _: odd), QUESTION, watch.config)
    assert watch.triples == [(QUESTION, [], ANSWER)]
    assert watch.stats.incomplete == {"no_answer": 1}


def test_structured_output_of_a_model_is_the_text_that_a_person_reads_of_it(watch, invoke):
    llm = model(calling("Reply", text=ANSWER)).with_structured_output(Reply)
    assert invoke(rag_chain(llm=llm, parser=RunnablePassthrough()), QUESTION, watch.config).sure
    assert watch.only == EXPECTED


@pytest.mark.parametrize("key", ["answer", "result", "output", "response", "generation"])
def test_a_parsed_dictionary_gives_its_answer(watch, invoke, key):
    reply = json.dumps({"sources": [1, 2], key: ANSWER})
    invoke(rag_chain(llm=model(reply), parser=JsonOutputParser()), QUESTION, watch.config)
    assert watch.only == EXPECTED


def test_a_parsed_dictionary_with_names_of_its_own_is_the_models_text(watch, invoke):
    reply = json.dumps({"duration": "five days", "days": 5})
    invoke(rag_chain(llm=model(reply), parser=JsonOutputParser()), QUESTION, watch.config)
    assert watch.only == (QUESTION, REFUNDS, reply)


def test_a_parsed_list_is_the_models_text(watch, invoke):
    chain = rag_chain(llm=model("five days, card"), parser=CommaSeparatedListOutputParser())
    assert invoke(chain, QUESTION, watch.config) == ["five days", "card"]
    assert watch.only == (QUESTION, REFUNDS, "five days, card")


def test_the_providers_id_of_the_answer_is_kept(watch, invoke):
    message = AIMessage(ANSWER, response_metadata={"id": "msg_1"})
    invoke(rag_chain(llm=model(message)), QUESTION, watch.config)
    assert watch.only == EXPECTED
    assert watch.results[0].run.response_id == "msg_1"
