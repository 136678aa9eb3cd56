"""Functions that call a retriever and a model themselves, as most scripts and endpoints do."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from harness import app
from llama_index.core import PromptTemplate, get_response_synthesizer
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.prompts import ChatPromptTemplate
from llama_index.core.schema import MetadataMode
from llama_index.core.vector_stores import VectorStoreQuery
from llama_index_fakes import Shelf, WordEmbedding, call, index, scored, talker, when, writer

dispatcher = get_dispatcher(__name__)

OVEN = "The oven must be preheated to 220 degrees for bread."
DOUGH = "Rye dough rests for twelve hours."
CAKE = "Cheesecake bakes at 160 degrees."


def joined(nodes):
    return "\n\n".join(node.get_content() for node in nodes)


@app(
    "retrieve and complete",
    question="How hot must the oven be for bread?",
    answer="220 degrees. Put a bowl of water inside.",
    chunks=[OVEN],
    absent=[CAKE],
    invented=["Put a bowl of water inside."],
)
def retrieve_and_complete():
    question = "How hot must the oven be for bread?"
    nodes = index(OVEN, CAKE).as_retriever(similarity_top_k=1).retrieve(question)
    llm = writer("220 degrees. Put a bowl of water inside.")
    llm.complete(f"Context:\n{joined(nodes)}\n\nQuestion: {question}\nAnswer:")


@app(
    "retrieve and chat",
    question="How long does rye dough rest?",
    answer="Twelve hours.",
    chunks=[DOUGH, OVEN],
)
def retrieve_and_chat():
    question = "How long does rye dough rest?"
    nodes = Shelf(DOUGH, OVEN).retrieve(question)
    talker("Twelve hours.").chat(
        [
            ChatMessage(role="system", content=f"Answer from these notes:\n{joined(nodes)}"),
            ChatMessage(role="user", content=question),
        ]
    )


@app(
    "retrieve and predict with a template",
    question="How long does rye dough rest?",
    answer="It rests for twelve hours.",
    chunks=[DOUGH],
    prompt=["Bakery Huber, open since 1911"],
)
def retrieve_and_predict():
    question = "How long does rye dough rest?"
    nodes = Shelf(DOUGH).retrieve(question)
    template = PromptTemplate("{shop}\n---\n{context}\n---\n{question}")
    talker("It rests for twelve hours.").predict(
        template, shop="Bakery Huber, open since 1911", context=joined(nodes), question=question
    )


@app(
    "retrieve and chat with a template of messages",
    question="How hot for bread?",
    answer="220 degrees, preheated.",
    chunks=[OVEN],
)
def chat_template():
    nodes = Shelf(OVEN).retrieve("How hot for bread?")
    template = ChatPromptTemplate.from_messages(
        [("system", "Only use: {context}"), ("user", "{question}")]
    )
    messages = template.format_messages(context=joined(nodes), question="How hot for bread?")
    talker("220 degrees, preheated.").chat(messages)


@app(
    "retrieve and complete, asynchronous",
    question="How hot must the oven be for bread?",
    answer="It must have 220 degrees.",
    chunks=[OVEN],
)
async def async_function():
    question = "How hot must the oven be for bread?"
    nodes = await Shelf(OVEN).aretrieve(question)
    await talker("It must have 220 degrees.").achat([ChatMessage(f"{joined(nodes)}\n\n{question}")])


@app(
    "retrieve and stream",
    question="How hot must the oven be for bread?",
    answer="Preheat it to 220 degrees.",
    chunks=[OVEN],
)
def stream_function():
    question = "How hot must the oven be for bread?"
    nodes = Shelf(OVEN).retrieve(question)
    text = ""
    for piece in writer("Preheat it to 220 degrees.").stream_complete(
        f"{joined(nodes)}\n{question}"
    ):
        text += piece.delta
    assert text == "Preheat it to 220 degrees."


def _chat_tokens(question, llm, retriever):
    nodes = retriever.retrieve(question)
    for piece in llm.stream_chat([ChatMessage(f"{joined(nodes)}\n{question}")]):
        yield piece.delta


@app(
    "a generator of tokens, as a web framework streams them",
    question="How long does rye dough rest?",
    answer="Rye dough rests twelve hours.",
    chunks=[DOUGH],
)
def token_generator():
    tokens = _chat_tokens(
        "How long does rye dough rest?", talker("Rye dough rests twelve hours."), Shelf(DOUGH)
    )
    assert "".join(tokens) == "Rye dough rests twelve hours."


@app(
    "get_response of a synthesizer with plain texts",
    question="What is needed for bread?",
    answer="Rested rye dough and an oven of 220 degrees.",
    chunks=[DOUGH, OVEN],
)
def get_response():
    # The texts come from a store of the application's own.
    synthesizer = get_response_synthesizer(
        llm=writer("Rested rye dough and an oven of 220 degrees."), response_mode="compact"
    )
    synthesizer.get_response("What is needed for bread?", text_chunks=[DOUGH, OVEN])


@app(
    "get_response after a search",
    question="What is needed for bread?",
    answer="An oven of 220 degrees and patience.",
    chunks=[DOUGH, OVEN],
)
def retrieve_and_get_response():
    question = "What is needed for bread?"
    nodes = Shelf(DOUGH, OVEN).retrieve(question)
    get_response_synthesizer(
        llm=talker("An oven of 220 degrees and patience."), response_mode="tree_summarize"
    ).get_response(question, [node.get_content(MetadataMode.LLM) for node in nodes])


@app(
    "a function under the dispatcher's span",
    question="How long does rye dough rest?",
    answer="For twelve hours.",
    chunks=[DOUGH],
    absent=["resting time rye dough"],
)
def under_span():
    llm = writer("resting time rye dough", "For twelve hours.")

    @dispatcher.span
    def answer(question):
        query = llm.complete(f"Search words for: {question}").text
        nodes = Shelf(DOUGH).retrieve(query)
        return llm.complete(f"{joined(nodes)}\n{question}").text

    answer("How long does rye dough rest?")


@app(
    "an asynchronous function under the dispatcher's span with a user's name",
    question="How long does rye dough rest?",
    answer="Twelve hours, Jo.",
    chunks=[DOUGH],
)
async def async_under_span():
    @dispatcher.span
    async def answer(question: str, user_name: str):
        nodes = await Shelf(DOUGH).aretrieve(question)
        said = await talker("Twelve hours, Jo.").acomplete(
            f"{joined(nodes)}\n{user_name}: {question}"
        )
        return said.text

    await answer(question="How long does rye dough rest?", user_name="Jo")


class Bakery:
    """An object with its parts, as applications keep them."""

    def __init__(self, retriever, llm):
        self.retriever, self.llm = retriever, llm

    def ask(self, question):
        context = self.search(question)
        return self.write(question, context)

    def search(self, question):
        return joined(self.retriever.retrieve(question))

    def write(self, question, context):
        return self.llm.complete(f"Facts: {context}\nCustomer asks: {question}").text


@app(
    "methods of an object",
    question="What about cheesecake?",
    answer="Bake it at 160 degrees.",
    chunks=[CAKE],
)
def methods():
    Bakery(Shelf(CAKE), talker("Bake it at 160 degrees.")).ask("What about cheesecake?")


@app(
    "a rewritten query, a search, and an answer",
    question="And bread?",
    answer="Bread wants 220 degrees.",
    chunks=[OVEN],
    absent=["oven temperature bread baking"],
)
def rewritten():
    llm = talker("oven temperature bread baking", "Bread wants 220 degrees.")

    @dispatcher.span
    def chat(message):
        query = llm.complete(f"Rewrite: {message}").text
        nodes = Shelf(OVEN).retrieve(query)
        return llm.complete(f"Context: {joined(nodes)}\nUser: {message}").text

    chat("And bread?")


@app(
    "a retriever over several hops, each query by a model",
    question="How do I bake rye bread?",
    answer="Let the dough rest for twelve hours, then bake it at 220 degrees.",
    chunks=[DOUGH, OVEN],
    absent=["Next: rest of dough", "Next: heat of oven"],
)
def hops():
    llm = writer(
        when(
            {
                "Answer now": "Let the dough rest for twelve hours, then bake it at 220 degrees.",
                DOUGH: "Next: heat of oven",
            },
            "Next: rest of dough",
        )
    )
    store = {"Next: rest of dough": Shelf(DOUGH), "Next: heat of oven": Shelf(OVEN)}

    @dispatcher.span
    def answer(question):
        found = ""
        for _ in range(2):
            query = llm.complete(f"Known: {found}\nWhat to look for, for: {question}?").text
            found += joined(store[query].retrieve(query)) + "\n"
        return llm.complete(f"Known: {found}\nAnswer now: {question}").text

    answer("How do I bake rye bread?")


@app(
    "search and answer in a pool's thread that inherits the context",
    question="How long does rye dough rest?",
    answer="It has to rest twelve hours.",
    chunks=[DOUGH],
)
def pool_with_context():
    question = "How long does rye dough rest?"

    @dispatcher.span
    def answer(question):
        with ThreadPoolExecutor(1) as pool:
            nodes = pool.submit(copy_context().run, Shelf(DOUGH).retrieve, question).result()
        return writer("It has to rest twelve hours.").complete(f"{joined(nodes)}\n{question}").text

    answer(question)


@app(
    "two searches in threads of a pool under the dispatcher's span",
    question="What is needed for bread?",
    answer="A rested dough, and 220 degrees.",
    prompt=[DOUGH, OVEN],
    status="not_rag",  # nothing connects the searches with the function
)
def pool_of_searches():
    @dispatcher.span
    def answer(question):
        with ThreadPoolExecutor(2) as pool:
            # The pool's threads do not inherit the context: only the prompt shows what they found.
            found = list(
                pool.map(lambda each: each.retrieve(question), (Shelf(DOUGH), Shelf(OVEN)))
            )
        context = "\n".join(joined(nodes) for nodes in found)
        return talker("A rested dough, and 220 degrees.").complete(f"{context}\n{question}").text

    answer("What is needed for bread?")


@app(
    "searches side by side with gather",
    question="What is needed for bread?",
    answer="Dough that rested, a hot oven.",
    chunks=[DOUGH, OVEN],
    status="not_rag",  # searches in tasks of their own, which have ended
)
async def gathered():
    question = "What is needed for bread?"
    found = await asyncio.gather(Shelf(DOUGH).aretrieve(question), Shelf(OVEN).aretrieve(question))
    context = "\n".join(joined(nodes) for nodes in found)
    await talker("Dough that rested, a hot oven.").acomplete(f"{context}\n\n{question}")


@app(
    "a structured reply that a template turns into the answer",
    question="How long does rye dough rest?",
    answer="Rye: 12 hours.",
    chunks=[DOUGH],
)
def structured_reply():
    class Rest(BaseModel):
        """Resting time."""

        flour: str
        hours: int

    @dispatcher.span
    def answer(question):
        nodes = Shelf(DOUGH).retrieve(question)
        made = talker(call("Rest", flour="Rye", hours=12)).structured_predict(
            Rest, PromptTemplate("{context}\n{question}"), context=joined(nodes), question=question
        )
        return f"{made.flour}: {made.hours} hours."

    answer("How long does rye dough rest?")


@app(
    "a vector store that is asked without a retriever",
    question="How long does rye dough rest?",
    answer="Twelve hours of rest.",
    prompt=[DOUGH],
    status="not_rag",  # a store's query is no event
)
def vector_store():
    made = index(DOUGH)
    store, embedding = made.vector_store, WordEmbedding()

    @dispatcher.span
    def answer(question):
        result = store.query(
            VectorStoreQuery(
                query_embedding=embedding.get_query_embedding(question), similarity_top_k=1
            )
        )
        texts = [made.docstore.get_node(id_).get_content() for id_ in result.ids]
        return (
            writer("Twelve hours of rest.")
            .complete(f"Context: {texts[0]}\nQuestion: {question}")
            .text
        )

    answer("How long does rye dough rest?")


@app(
    "one question to two models of which one is the judge of the other",
    question="How hot for cheesecake?",
    answer="160 degrees.",
    chunks=[CAKE],
    absent=["Verdict: the answer is right and friendly."],
)
def judged():
    @dispatcher.span
    def answer(question):
        nodes = Shelf(CAKE).retrieve(question)
        said = talker("160 degrees.").complete(f"{joined(nodes)}\n{question}").text
        writer("Verdict: the answer is right and friendly.").complete(f"Is this right? {said}")
        return said

    answer("How hot for cheesecake?")


@app(
    "metadata that the function writes into its prompt",
    question="Where is the recipe for rye bread?",
    answer="In book 3 on page 17: the dough rests twelve hours.",
    chunks=[DOUGH],
    prompt=["book 3, page 17"],
)
def metadata_in_prompt():
    question = "Where is the recipe for rye bread?"
    nodes = Shelf(scored(DOUGH, metadata={"place": "book 3, page 17"})).retrieve(question)
    context = "\n".join(f"[{n.metadata['place']}] {n.node.get_content()}" for n in nodes)
    said = "In book 3 on page 17: the dough rests twelve hours."
    talker(said).complete(f"{context}\n\n{question}")


@app("a lone call of a model", status="not_rag")
def lone_model():
    writer("Hello to you too.").complete("Say hello.")


@app("a lone search", status="not_rag")
def lone_search():
    index(OVEN).as_retriever().retrieve("oven")


@app(
    "a search and a model's call about something else",
    status="not_rag",
)
def unrelated():
    Shelf(OVEN).retrieve("oven")
    writer("Guten Tag").complete("Translate into German: Good day")


@app(
    "two requests after each other in one thread",
    question="How hot for cheesecake?",
    answer="160 degrees, no more.",
    chunks=[CAKE],
    absent=[DOUGH, "A whole night of rest."],
    cases=2,
)
def two_requests():
    for question, text, said in (
        ("How long does rye dough rest?", DOUGH, "A whole night of rest."),
        ("How hot for cheesecake?", CAKE, "160 degrees, no more."),
    ):
        nodes = Shelf(text).retrieve(question)
        writer(said).complete(f"{joined(nodes)}\n\nQ: {question}")


@app(
    "a loop over the questions of a conversation, with its history in the prompt",
    question="And how hot is the oven?",
    answer="220 degrees for bread.",
    chunks=[OVEN],
    absent=["Leave it alone overnight, on a shelf."],
    cases=2,
)
def conversation():
    history = []
    for question, text, said in (
        ("How long does rye dough rest?", DOUGH, "Leave it alone overnight, on a shelf."),
        ("And how hot is the oven?", OVEN, "220 degrees for bread."),
    ):
        nodes = Shelf(text).retrieve(question)
        messages = [
            ChatMessage(role="system", content=f"Use: {joined(nodes)}"),
            *history,
            ChatMessage(role="user", content=question),
        ]
        reply = talker(said).chat(messages).message
        history += [messages[-1], reply]


@app(
    "two threads that each serve a user",
    question="How hot for cheesecake?",
    answer="160 degrees for Ben.",
    chunks=[CAKE],
    absent=[DOUGH, "Twelve hours for Ann."],
    cases=2,
)
def two_threads():
    start = threading.Barrier(2)

    def serve(question, text, said):
        start.wait()
        nodes = Shelf(text).retrieve(question)
        start.wait()
        writer(said).complete(f"{joined(nodes)}\n{question}")

    threads = [
        threading.Thread(target=serve, args=args)
        for args in (
            ("How long does rye dough rest?", DOUGH, "Twelve hours for Ann."),
            ("How hot for cheesecake?", CAKE, "160 degrees for Ben."),
        )
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@app(
    "a batch of questions answered with gather",
    question="How hot for cheesecake?",
    answer="160 degrees in the middle of the oven.",
    chunks=[CAKE],
    absent=[DOUGH, OVEN],
    cases=3,
)
async def batch():
    async def one(question, text, said):
        nodes = await Shelf(text).aretrieve(question)
        await asyncio.sleep(0)
        await talker(said).acomplete(f"{joined(nodes)}\n{question}")

    await asyncio.gather(
        one("How long does rye dough rest?", DOUGH, "Twelve hours it is."),
        one("How hot for cheesecake?", CAKE, "160 degrees in the middle of the oven."),
        one("How hot must the oven be for bread?", OVEN, "220 degrees I say."),
    )
