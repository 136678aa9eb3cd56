"""Conversations that are written into the prompt of a completion model."""

import json
from functools import partial

from harness import app
from llama_index.core import ChatPromptTemplate
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index_fakes import Shelf, following, memory, when, writer

ROOMS = "The inn at Vik has 48 rooms."
BREAKFAST = "Breakfast at the inn at Vik is served from half past six."
FIRST, ASKED = "How many rooms are there?", "And when is breakfast?"
KING = "It was opened in 1911 by a king."
# It begins with a document's sentence, and goes on in lines of which one looks like a label.
EARLIER = f"{ROOMS} {KING}\n\nHe came by boat.\nNote: guests of the king slept in the east wing."
ANSWER = f"Breakfast is served from half past six. {KING}"
LATER = {
    "question": ASKED,
    "answer": ANSWER,
    "chunks": [ROOMS, BREAKFAST],
    "absent": ["slept in the east wing", "opened in 1911"],
    "invented": [KING],
}


def llama2(messages):
    """A prompt in the format of a model of its own."""
    marks = {"user": "<s>[INST] {} [/INST]", "assistant": " {} </s>", "system": "<<SYS>>{}<</SYS>>"}
    return "".join(marks[each.role.value].format(each.content) for each in messages)


def model(**options):
    script = {"standalone question": "When is breakfast?", ASKED: ANSWER, "When is": ANSWER}
    return writer(when(script, EARLIER), **options)


def chat_with(engine):
    return engine.from_defaults(Shelf(ROOMS, BREAKFAST), llm=model(), memory=memory())


@app("a second chat with a completion model", cases=2, **LATER)
def second_chat():
    engine = chat_with(ContextChatEngine)
    engine.chat(FIRST)
    engine.chat(ASKED)


@app("a streamed second chat with a completion model", cases=2, **LATER)
def streamed_chat():
    engine = chat_with(CondensePlusContextChatEngine)
    for question in (FIRST, ASKED):
        "".join(engine.stream_chat(question).response_gen)


@app("an asynchronous stream of a second chat with a completion model", cases=2, **LATER)
async def async_stream():
    engine = chat_with(ContextChatEngine)
    for question in (FIRST, ASKED):
        stream = await engine.astream_chat(question)
        assert [token async for token in stream.async_response_gen()]


@app("a second chat in the format of a model", cases=2, **LATER)
async def own_format():
    llm = model(messages_to_prompt=llama2)
    engine = ContextChatEngine.from_defaults(Shelf(ROOMS, BREAKFAST), llm=llm, memory=memory())
    await engine.achat(FIRST)
    await engine.achat(ASKED)


@app("a history that the application gives a chat engine", **LATER)
def given_history():
    history = [
        ChatMessage(role=MessageRole.USER, content=FIRST),
        ChatMessage(role=MessageRole.ASSISTANT, content=EARLIER),
    ]
    chat_with(ContextChatEngine).chat(ASKED, chat_history=history)


@app("a condensed second question with a completion model", cases=2, **LATER)
def condensed():
    llm = model()
    engine = CondenseQuestionChatEngine.from_defaults(
        RetrieverQueryEngine.from_args(Shelf(ROOMS, BREAKFAST), llm=llm), llm=llm, memory=memory()
    )
    engine.chat(FIRST)
    engine.chat(ASKED)


@app(
    "a chat without documents in a completion model's format",
    status="not_rag",
)
def no_documents():
    engine = SimpleChatEngine.from_defaults(llm=model(), memory=memory())
    engine.chat(FIRST)
    "".join(engine.stream_chat(ASKED).response_gen)


def react(streaming):
    def reply(prompt):
        turn = prompt[max(prompt.rfind(FIRST), prompt.rfind(ASKED)) :]
        if "Observation:" not in turn:
            return "Thought: I search.\nAction: search\nAction Input: {}"
        return f"Thought: I can answer.\nAnswer: {ANSWER if ASKED in turn else EARLIER}"

    def search() -> list[str]:
        """Searches the house rules."""
        return [ROOMS, BREAKFAST]

    return ReActAgent(tools=[search], llm=writer(reply), streaming=streaming)


async def react_twice(streaming):
    agent, turns = react(streaming), memory()
    for question in (FIRST, ASKED):
        await agent.run(question, memory=turns)


for is_streamed in (False, True):
    app(
        f"a ReAct agent with a completion model that is {'' if is_streamed else 'not '}streamed",
        cases=2,
        **{**LATER, "chunks": [f"{[ROOMS, BREAKFAST]}"]},
    )(partial(react_twice, is_streamed))


@app("a workflow with a template of messages and a completion model", **LATER)
async def templated():
    class Desk(Workflow):
        @step
        async def answer(self, ev: StartEvent) -> StopEvent:
            nodes = await Shelf(ROOMS, BREAKFAST).aretrieve(ev.question)
            template = ChatPromptTemplate(
                [
                    ChatMessage(role=MessageRole.SYSTEM, content="Use {notes}"),
                    ChatMessage(role=MessageRole.USER, content=FIRST),
                    ChatMessage(role=MessageRole.ASSISTANT, content=EARLIER),
                    ChatMessage(role=MessageRole.USER, content="{question}"),
                ]
            )
            notes = "\n".join(each.text for each in nodes)
            said = await model().apredict(template, notes=notes, question=ev.question)
            return StopEvent(result=said)

    await Desk(timeout=20).run(question=ASKED)


HISTORY = [("user", FIRST), ("assistant", EARLIER)]


def by_hand(write):
    """A function that writes the conversation itself; only its model is LlamaIndex's."""

    @following().trace
    def ask(question):
        nodes = Shelf(ROOMS, BREAKFAST).retrieve(question)
        notes = "\n".join(each.text for each in nodes)
        return model().complete(write(notes, question)).text

    ask(ASKED)


WRITTEN = {
    "labels before the documents": lambda notes, question: (
        "History:\n"
        + "\n".join(f"{role}: {text}" for role, text in HISTORY)
        + f"\n\nContext:\n{notes}\n\nQuestion: {question}"
    ),
    "labels after the documents": lambda notes, question: (
        f"{notes}\n\nHuman: {FIRST}\nAI: {EARLIER}\nHuman: {question}\nAI:"
    ),
    "ChatML": lambda notes, question: (
        f"{notes}\n"
        + "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in HISTORY)
        + f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    ),
    "headings": lambda notes, question: (
        f"### Instruction:\n{FIRST}\n\n### Response:\n{EARLIER}\n\n### Context:\n{notes}\n\n"
        f"### Instruction:\n{question}\n\n### Response:\n"
    ),
    "JSON": lambda notes, question: (
        f"{notes}\n\n{json.dumps([{'role': r, 'content': t} for r, t in HISTORY])}\n{question}"
    ),
    "tags": lambda notes, question: (
        f"{notes}\n\n<user>{FIRST}</user>\n<assistant>{EARLIER}</assistant>\n{question}"
    ),
}
for form, written in WRITTEN.items():
    app(f"a history that a function writes as {form}", **LATER)(partial(by_hand, written))
