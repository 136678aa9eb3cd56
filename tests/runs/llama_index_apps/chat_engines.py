"""Chat engines of each kind, with history, memories and streams."""

from harness import app
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.memory import (
    ChatSummaryMemoryBuffer,
    FactExtractionMemoryBlock,
    Memory,
    StaticMemoryBlock,
    VectorMemoryBlock,
)
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index_fakes import (
    Shelf,
    WordEmbedding,
    default_model,
    index,
    memory,
    scored,
    talker,
    when,
    writer,
)

GYM = "The gym is open from six in the morning until eleven at night."
SAUNA = "The sauna costs 8 euros extra and is closed on Mondays."
YOGA = "Yoga classes start at seven every evening except Sunday."


class ByWord(BaseRetriever):
    """Finds the texts that stand under a word of the query."""

    def __init__(self, **texts):
        super().__init__()
        self.texts = texts

    def _retrieve(self, query_bundle):
        asked = query_bundle.query_str.lower()
        return [scored(text) for word, text in self.texts.items() if word in asked]


def user(text):
    return ChatMessage(role=MessageRole.USER, content=text)


def assistant(text):
    return ChatMessage(role=MessageRole.ASSISTANT, content=text)


@app(
    "a chat about documents",
    question="When does the gym open?",
    answer="At six in the morning.",
    chunks=[GYM],
)
def context_chat():
    ContextChatEngine.from_defaults(
        Shelf(GYM), llm=talker("At six in the morning."), memory=memory()
    ).chat("When does the gym open?")


@app(
    "a chat about documents with a completion model",
    question="When does the gym open?",
    answer="It opens at six. Members get a towel.",
    chunks=[GYM],
    invented=["Members get a towel."],
)
def context_chat_of_completions():
    ContextChatEngine.from_defaults(
        Shelf(GYM), llm=writer("It opens at six. Members get a towel."), memory=memory()
    ).chat("When does the gym open?")


@app(
    "the second turn of a chat about documents",
    question="And what does the sauna cost?",
    answer="The sauna is 8 euros extra.",
    chunks=[SAUNA],
    absent=["From six until eleven, with free coffee for early guests."],
    cases=2,
)
def context_chat_two_turns():
    engine = ContextChatEngine.from_defaults(
        ByWord(gym=GYM, sauna=SAUNA),
        llm=talker(
            "From six until eleven, with free coffee for early guests.",
            "The sauna is 8 euros extra.",
        ),
        memory=memory(),
    )
    engine.chat("When is the gym open?")
    engine.chat("And what does the sauna cost?")


@app(
    "a second turn that repeats what the first invented",
    question="Is there anything free with the gym?",
    answer="Yes. Early guests get free coffee.",
    chunks=["Lockers in the gym need a coin of one euro."],
    absent=["From six until eleven. Early guests get free coffee."],
    invented=["Early guests get free coffee."],
    cases=2,
)
def repeated_invention():
    engine = ContextChatEngine.from_defaults(
        ByWord(open=GYM, free="Lockers in the gym need a coin of one euro."),
        llm=talker(
            "From six until eleven. Early guests get free coffee.",
            "Yes. Early guests get free coffee.",
        ),
        memory=memory(),
    )
    engine.chat("When is it open?")
    engine.chat("Is there anything free with the gym?")


@app(
    "a chat whose system prompt has facts",
    question="May I bring my dog to the gym?",
    answer="Dogs may wait at the desk in Hall B, says the manager Rosa.",
    chunks=[GYM],
    prompt=["Today's manager is Rosa. Dogs may wait at the desk in Hall B."],
)
def facts_in_system_prompt():
    ContextChatEngine.from_defaults(
        Shelf(GYM),
        llm=talker("Dogs may wait at the desk in Hall B, says the manager Rosa."),
        memory=memory(),
        system_prompt="You help. Today's manager is Rosa. Dogs may wait at the desk in Hall B.",
    ).chat("May I bring my dog to the gym?")


@app(
    "a question that is condensed with the history",
    question="Is it closed on some day?",
    answer="Yes, on Mondays.",
    chunks=[SAUNA],
    absent=["Is the sauna closed on any weekday?", "Eight euros on top of the ticket."],
    cases=2,
)
def condensed():
    said = writer(
        when(
            {
                "standalone question": "Is the sauna closed on any weekday?",
                "closed on any weekday": "Yes, on Mondays.",
            },
            "Eight euros on top of the ticket.",
        )
    )
    engine = CondenseQuestionChatEngine.from_defaults(
        RetrieverQueryEngine.from_args(ByWord(sauna=SAUNA), llm=said), llm=said, memory=memory()
    )
    engine.chat("What does the sauna cost?")
    engine.chat("Is it closed on some day?")


@app(
    "condense plus context in its second turn",
    question="On which day not?",
    answer="There is no yoga on Sundays.",
    chunks=[YOGA],
    absent=["On which day is there no yoga class?", "Every evening at seven o'clock sharp."],
    cases=2,
)
def condense_plus_context():
    llm = talker(
        when(
            {
                "standalone question": "On which day is there no yoga class?",
                "user: On which day not?": "There is no yoga on Sundays.",
            },
            "Every evening at seven o'clock sharp.",
        )
    )
    engine = CondensePlusContextChatEngine.from_defaults(
        ByWord(yoga=YOGA), llm=llm, memory=memory()
    )
    engine.chat("When are yoga classes?")
    engine.chat("On which day not?")


@app(
    "condense plus context, asynchronous, first turn",
    question="When are yoga classes?",
    answer="At seven every evening but Sunday.",
    chunks=[YOGA],
)
async def condense_plus_context_async():
    engine = CondensePlusContextChatEngine.from_defaults(
        Shelf(YOGA), llm=talker("At seven every evening but Sunday."), memory=memory()
    )
    await engine.achat("When are yoga classes?")


@app(
    "condense plus context with a history that the request brought along",
    question="And on Mondays?",
    answer="The sauna is closed on Mondays.",
    chunks=[SAUNA],
    absent=["Is the sauna open on Mondays?", "Eight euros, towels included."],
)
def history_in_request():
    llm = talker(
        when(
            {"standalone question": "Is the sauna open on Mondays?"},
            "The sauna is closed on Mondays.",
        )
    )
    CondensePlusContextChatEngine.from_defaults(ByWord(sauna=SAUNA), llm=llm, memory=memory()).chat(
        "And on Mondays?",
        chat_history=[
            user("What does the sauna cost?"),
            assistant("Eight euros, towels included."),
        ],
    )


@app(
    "what the user said before is evidence, what the assistant said is not",
    question="Which class suits me?",
    answer="Yoga at seven, because you work until half past six and have a sore back.",
    chunks=[YOGA],
    prompt=["I work until half past six and my back is sore."],
    absent=["Then swimming would be good, I would say."],
)
def user_said_before():
    ContextChatEngine.from_defaults(
        Shelf(YOGA),
        llm=talker("Yoga at seven, because you work until half past six and have a sore back."),
        memory=memory(),
    ).chat(
        "Which class suits me?",
        chat_history=[
            user("I work until half past six and my back is sore."),
            assistant("Then swimming would be good, I would say."),
        ],
    )


@app("small talk without any search", status="not_rag")
def simple_chat():
    SimpleChatEngine.from_defaults(llm=talker("I lift, therefore I am."), memory=memory()).chat(
        "Tell me a joke about gyms."
    )


@app(
    "the chat engine of an index",
    question="What does the sauna cost?",
    answer="8 euros on top.",
    chunks=[SAUNA],
)
def chat_engine_of_index():
    index(SAUNA).as_chat_engine(
        chat_mode="condense_plus_context", llm=talker("8 euros on top."), memory=memory()
    ).chat("What does the sauna cost?")


@app(
    "the context chat engine of an index",
    question="When are the yoga classes?",
    answer="Every evening at seven, Sundays excepted.",
    chunks=[YOGA],
    absent=[GYM],
)
def context_engine_of_index():
    index(YOGA, GYM).as_chat_engine(
        chat_mode="context",
        similarity_top_k=1,
        llm=talker("Every evening at seven, Sundays excepted."),
        memory=memory(),
    ).chat("When are the yoga classes?")


# --- streams --------------------------------------------------------------------------------------


@app(
    "a chat that streams",
    question="When does the gym close?",
    answer="It closes at eleven at night.",
    chunks=[GYM],
)
def stream_chat():
    response = ContextChatEngine.from_defaults(
        Shelf(GYM), llm=talker("It closes at eleven at night."), memory=memory()
    ).stream_chat("When does the gym close?")
    assert "".join(response.response_gen) == "It closes at eleven at night."


@app(
    "a chat that streams asynchronously",
    question="When does the gym close?",
    answer="It closes at eleven at night.",
    chunks=[GYM],
)
async def astream_chat():
    response = await CondensePlusContextChatEngine.from_defaults(
        Shelf(GYM), llm=talker("It closes at eleven at night."), memory=memory()
    ).astream_chat("When does the gym close?")
    assert "".join([piece async for piece in response.async_response_gen()])


@app(
    "two turns of a chat that streams",
    question="And the sauna?",
    answer="The sauna is closed on Mondays.",
    chunks=[SAUNA],
    absent=["The gym shuts at eleven, guests leave before."],
    cases=2,
)
def stream_two_turns():
    engine = ContextChatEngine.from_defaults(
        ByWord(gym=GYM, sauna=SAUNA),
        llm=talker(
            "The gym shuts at eleven, guests leave before.", "The sauna is closed on Mondays."
        ),
        memory=memory(),
    )
    for question in ("When does the gym close?", "And the sauna?"):
        for _ in engine.stream_chat(question).response_gen:
            pass


@app(
    "a condensed question whose engine streams",
    question="What does the sauna cost?",
    answer="Eight euros.",
    chunks=[SAUNA],
)
def condensed_stream():
    llm = writer("Eight euros.")
    response = CondenseQuestionChatEngine.from_defaults(
        RetrieverQueryEngine.from_args(Shelf(SAUNA), llm=llm, streaming=True),
        llm=llm,
        memory=memory(),
    ).stream_chat("What does the sauna cost?")
    for _ in response.response_gen:
        pass


# --- memories -------------------------------------------------------------------------------------


@app(
    "a memory that a model sums up when it gets long",
    question="So what should I book?",
    answer="Book the yoga class at seven.",
    chunks=[YOGA],
    prompt=["I like it calm.", "My knees hurt when I run."],
    absent=["Guest with bad knees prefers calm sports."],
)
def summary_memory():
    summarizer = writer("Guest with bad knees prefers calm sports.")
    buffer = ChatSummaryMemoryBuffer.from_defaults(
        chat_history=[
            user("Good day! " + "My knees hurt when I run. " * 12),
            assistant("That is a pity. " * 12),
            user("I like it calm."),
            assistant("Noted."),
        ],
        llm=summarizer,
        token_limit=60,
        tokenizer_fn=str.split,
    )
    ContextChatEngine.from_defaults(
        Shelf(YOGA), llm=talker("Book the yoga class at seven."), memory=buffer
    ).chat("So what should I book?")


def long_term(*blocks, **settings):
    return Memory.from_defaults(
        session_id="guest", token_limit=4000, memory_blocks=list(blocks), **settings
    )


@app(
    "a block of memory with fixed facts about the user",
    question="Which class can I still take?",
    answer="The yoga class, your ticket covers group classes until June.",
    chunks=[YOGA],
    prompt=["The guest holds ticket B: group classes until June."],
)
async def static_block():
    block = StaticMemoryBlock(
        name="guest",
        static_content="The guest holds ticket B: group classes until June.",
        priority=0,
    )
    with default_model():
        engine = ContextChatEngine.from_defaults(
            Shelf(YOGA),
            llm=talker("The yoga class, your ticket covers group classes until June."),
            memory=long_term(block),
        )
    await engine.achat("Which class can I still take?")


@app(
    "a block of memory with facts that an earlier session kept",
    question="What is good for me today?",
    answer="Yoga at seven would be good.",
    chunks=[YOGA],
    prompt=["Guest has a bad knee."],
)
async def fact_block():
    block = FactExtractionMemoryBlock(
        name="facts", llm=writer("<facts></facts>"), facts=["Guest has a bad knee."], priority=1
    )
    with default_model():
        engine = ContextChatEngine.from_defaults(
            Shelf(YOGA), llm=talker("Yoga at seven would be good."), memory=long_term(block)
        )
    await engine.achat("What is good for me today?")


@app(
    "a memory of vectors that finds an old message of the user",
    question="Which shoes do I need in the gym?",
    answer="Size 44, with clean soles.",
    chunks=["Shoes in the gym need clean soles."],
    prompt=["My shoes are size 44."],
)
async def vector_block():
    node = TextNode(
        text="<message role='user'>My shoes are size 44.</message>",
        metadata={"session_id": "guest"},
    )
    node.embedding = WordEmbedding().get_text_embedding(node.text)

    class Kept(SimpleVectorStore):
        """The simple store keeps no texts; applications use one that does."""

        stores_text: bool = True

        def query(self, query, **kwargs):
            found = super().query(query, **kwargs)
            found.nodes = [node for _ in found.ids or ()]
            return found

        async def aquery(self, query, **kwargs):
            return self.query(query, **kwargs)

    store = Kept()
    store.add([node])
    block = VectorMemoryBlock(
        name="old", vector_store=store, embed_model=WordEmbedding(), similarity_top_k=1
    )
    with default_model():
        engine = ContextChatEngine.from_defaults(
            Shelf("Shoes in the gym need clean soles."),
            llm=talker("Size 44, with clean soles."),
            memory=long_term(block),
        )
    await engine.achat("Which shoes do I need in the gym?")


@app(
    "a history so long that its beginning is forgotten",
    question="What do I pay for the sauna?",
    answer="8 euros extra.",
    chunks=[SAUNA],
    absent=["I once broke my arm in Oslo."],
)
def forgotten():
    buffer = memory(limit=60)
    buffer.tokenizer_fn = str.split
    buffer.put(user("I once broke my arm in Oslo. " * 15))
    buffer.put(assistant("Sorry to hear that."))
    ContextChatEngine.from_defaults(Shelf(SAUNA), llm=talker("8 euros extra."), memory=buffer).chat(
        "What do I pay for the sauna?"
    )


@app(
    "a chat that is reset between two users",
    question="Is there yoga on Sunday?",
    answer="No, not on Sundays.",
    chunks=[YOGA],
    absent=["I am Tom from room 7.", "Hello Tom, how may I help?"],
    cases=2,
)
def reset():
    engine = ContextChatEngine.from_defaults(
        Shelf(YOGA),
        llm=talker("Hello Tom, how may I help?", "No, not on Sundays."),
        memory=memory(),
    )
    engine.chat("I am Tom from room 7.")
    engine.reset()
    engine.chat("Is there yoga on Sunday?")


AFTER_A_SHORT_QUESTION = {
    "question": "Tell me about the sauna",
    "answer": "It costs 8 euros extra. It is hot.",
    "chunks": [SAUNA],
    "absent": ["Is it hot", "Sure"],
    "invented": ["It is hot."],
}


@app("a chat after a short question and a short answer", **AFTER_A_SHORT_QUESTION)
def short_turns():
    engine = ContextChatEngine.from_defaults(
        Shelf(SAUNA), llm=talker(AFTER_A_SHORT_QUESTION["answer"]), memory=memory()
    )
    earlier = [user("Is it hot?"), assistant("Sure.")]
    engine.chat(AFTER_A_SHORT_QUESTION["question"], chat_history=earlier)


@app("a completion model after a short question and a short answer", **AFTER_A_SHORT_QUESTION)
def short_turns_written():
    engine = ContextChatEngine.from_defaults(
        Shelf(SAUNA), llm=writer(AFTER_A_SHORT_QUESTION["answer"]), memory=memory()
    )
    earlier = [user("Is it hot?"), assistant("Sure.")]
    engine.chat(AFTER_A_SHORT_QUESTION["question"], chat_history=earlier)
