"""Applications whose users send a file in the message that asks, or next to it."""

from functools import partial

from harness import app
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from llama_index.core.chat_engine import ContextChatEngine, SimpleChatEngine
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index_fakes import Shelf, following, memory, talker, writer

RENT = "The monthly rent is 1,240 euros."
PETS = "Pets need the written consent of the landlord."
LEASE = f"LEASE CONTRACT\n{RENT} The deposit equals three rents.\n{PETS}\nSigned: Ada Lind"
ASKED = "What must I know before I sign?"
SMOKING = "Smoking on the balcony is banned."
ANSWER = f"The rent is 1,240 euros a month. Pets need the landlord's consent. {SMOKING}"
TAGGED = f"<document>\n{LEASE}\n</document>\n{ASKED}"
ON_LEASE = {
    "question": ASKED,
    "answer": ANSWER,
    "prompt": [RENT, PETS],
    "invented": [SMOKING],
}


def user(*texts):
    return ChatMessage(role=MessageRole.USER, blocks=[TextBlock(text=text) for text in texts])


SENT = {
    "a text": TAGGED,
    "a block before the question": user(f"<file>\n{LEASE}\n</file>", ASKED),
    "a plain block after the question": user(ASKED, LEASE),
}


async def ask_agent(sent):
    agent = FunctionAgent(tools=[], llm=talker(ANSWER), system_prompt="You are a legal assistant.")
    await agent.run(sent)


for form, message in SENT.items():
    app(f"an agent that is sent a file in {form}", **ON_LEASE)(partial(ask_agent, message))


@app("a ReAct agent that is sent a file", **ON_LEASE)
async def react():
    reply = f"Thought: I can answer.\nAnswer: {ANSWER}"
    await ReActAgent(tools=[], llm=writer(reply), streaming=False).run(TAGGED)


@app("a chat without documents that is sent a file", **ON_LEASE)
def simple_chat():
    engine = SimpleChatEngine.from_defaults(llm=talker(ANSWER), memory=memory())
    engine.chat(TAGGED)


@app("a streamed chat of a completion model that is sent a file", **ON_LEASE)
def streamed_chat():
    engine = SimpleChatEngine.from_defaults(llm=writer(ANSWER), memory=memory())
    "".join(engine.stream_chat(TAGGED).response_gen)


@app(
    "a chat about documents that is sent a file as well",
    **{**ON_LEASE, "chunks": ["The law allows a deposit of at most two rents."]},
)
async def context_chat():
    engine = ContextChatEngine.from_defaults(
        Shelf("The law allows a deposit of at most two rents."), llm=talker(ANSWER), memory=memory()
    )
    await engine.achat(TAGGED)


@app("a workflow that is sent a file", **ON_LEASE)
async def workflow():
    class Desk(Workflow):
        @step
        async def answer(self, ev: StartEvent) -> StopEvent:
            return StopEvent(result=(await writer(ANSWER).acomplete(ev.query)).text)

    await Desk(timeout=20).run(query=TAGGED)


@app("a traced function that is sent a file in its question", **ON_LEASE)
def traced():
    @following().trace
    def ask(question):
        return talker(ANSWER).chat([user(question)]).message.content

    ask(TAGGED)


@app("an agent that is sent a file without a question", status="no_question")
async def only_a_file():
    await ask_agent(f"<file>\n{LEASE}\n</file>")
