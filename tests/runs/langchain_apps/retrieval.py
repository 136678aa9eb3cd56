"""Ways to retrieve: several queries, fusion, compression, reranking, parents, neighbours."""

from operator import itemgetter

from harness import app
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MergerRetriever,
    MultiQueryRetriever,
    ParentDocumentRetriever,
)
from langchain_classic.retrievers.document_compressors import (
    DocumentCompressorPipeline,
    LLMChainExtractor,
    LLMChainFilter,
    LLMListwiseRerank,
)
from langchain_classic.retrievers.multi_vector import MultiVectorRetriever
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.load import dumps, loads
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough, chain
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_fakes import Hashed, calling, chat, finding, joined, store
from langchain_text_splitters import RecursiveCharacterTextSplitter

PROMPT = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])


def rag(source, reply):
    return (
        {"context": source | joined, "question": RunnablePassthrough()}
        | PROMPT
        | chat(reply)
        | StrOutputParser()
    )


@app(
    "several queries by a model",
    question="How do I descale the kettle?",
    answer="Boil vinegar and water in it.",
    chunks=["To descale a kettle, boil one part vinegar with three parts water."],
    absent=["kettle limescale removal household remedy"],
)
def several_queries(config):
    queries = chat("kettle limescale removal household remedy\nclean kettle vinegar")
    retriever = MultiQueryRetriever.from_llm(
        finding("To descale a kettle, boil one part vinegar with three parts water."), queries
    )
    rag(retriever, "Boil vinegar and water in it.").invoke("How do I descale the kettle?", config)


@app(
    "reciprocal rank fusion of a model's queries",
    question="What do hedgehogs eat?",
    answer="Hedgehogs eat beetles and worms. They drink milk.",
    chunks=["Hedgehogs eat beetles.", "Earthworms are food for hedgehogs."],
    absent=["Hedgehogs sleep in winter."],
    invented=["They drink milk."],
)
def fusion(config):
    found = {
        "food of hedgehogs": ["Hedgehogs eat beetles.", "Earthworms are food for hedgehogs."],
        "hedgehog biology": ["Hedgehogs eat beetles.", "Hedgehogs sleep in winter."],
    }
    search = RunnableLambda(lambda query: finding(*found[query]).invoke(query))

    def fuse(lists):
        scores = {}
        for docs in lists:
            for rank, doc in enumerate(docs):
                key = dumps(Document(doc.page_content))
                scores[key] = scores.get(key, 0) + 1 / (rank + 60)
        ranked = sorted(scores, key=lambda key: (-scores[key], "winter" in key))
        return [(loads(key, allowed_objects="core"), scores[key]) for key in ranked]

    queries = (
        ChatPromptTemplate.from_template("Two queries for: {question}")
        | chat("food of hedgehogs\nhedgehog biology")
        | StrOutputParser()
        | str.splitlines
    )
    best = queries | search.map() | fuse | (lambda pairs: [doc for doc, _ in pairs[:2]])
    rag(best, "Hedgehogs eat beetles and worms. They drink milk.").invoke(
        "What do hedgehogs eat?", config
    )


@app(
    "an ensemble of two retrievers",
    question="Wie warm darf Milch werden?",
    answer="Milch sollte nicht über 70 Grad warm werden.",
    chunks=["Über 70 Grad gerinnt das Eiweiß der Milch.", "Milch schäumt bei 60 Grad am besten."],
)
def ensemble(config):
    retriever = EnsembleRetriever(
        retrievers=[
            finding("Über 70 Grad gerinnt das Eiweiß der Milch."),
            finding("Milch schäumt bei 60 Grad am besten."),
        ],
        weights=[0.5, 0.5],
    )
    rag(retriever, "Milch sollte nicht über 70 Grad warm werden.").invoke(
        "Wie warm darf Milch werden?", config
    )


@app(
    "passages that a model extracts",
    question="When was the mill built?",
    answer="The mill was built in 1720.",
    chunks=["The mill was built in 1720"],
    absent=["NO_OUTPUT"],
)
def extracted(config):
    def extract(messages):
        return "The mill was built in 1720" if "1720" in messages[-1].text else "NO_OUTPUT"

    retriever = ContextualCompressionRetriever(
        base_retriever=finding(
            "The mill was built in 1720 and burned twice.", "The pond is full of carp."
        ),
        base_compressor=LLMChainExtractor.from_llm(chat(extract)),
    )
    rag(retriever, "The mill was built in 1720.").invoke("When was the mill built?", config)


@app(
    "passages that a model filters",
    question="Is the cellar damp?",
    answer="Yes, the report mentions damp walls in the cellar.",
    chunks=["The walls of the cellar are damp up to one metre."],
    absent=["The roof was tiled in 2015."],
)
async def filtered(config):
    def relevant(messages):
        return "YES" if "damp up to" in messages[-1].text else "NO"

    retriever = ContextualCompressionRetriever(
        base_retriever=finding(
            "The walls of the cellar are damp up to one metre.", "The roof was tiled in 2015."
        ),
        base_compressor=LLMChainFilter.from_llm(chat(relevant)),
    )
    await rag(retriever, "Yes, the report mentions damp walls in the cellar.").ainvoke(
        "Is the cellar damp?", config
    )


@app(
    "documents that a model ranks",
    question="Which trail suits a pushchair?",
    answer="The lake path suits a pushchair.",
    chunks=["The lake path is paved and flat."],
    absent=["The gorge path has ladders."],
)
def ranked_by_a_model(config):
    ranking = calling("RankDocuments", ranked_document_ids=[1, 0])
    retriever = ContextualCompressionRetriever(
        base_retriever=finding("The gorge path has ladders.", "The lake path is paved and flat."),
        base_compressor=LLMListwiseRerank.from_llm(chat(ranking), top_n=1),
    )
    rag(retriever, "The lake path suits a pushchair.").invoke(
        "Which trail suits a pushchair?", config
    )


class CrossEncoder(BaseDocumentCompressor):
    """Scores by words in common, as a reranker does, and keeps the best."""

    top_n: int = 1

    def compress_documents(self, documents, query, callbacks=None):
        def score(doc):
            return len(set(doc.page_content.lower().split()) & set(query.lower().split()))

        ranked = sorted(documents, key=score, reverse=True)[: self.top_n]
        return [
            Document(doc.page_content, metadata={**doc.metadata, "relevance_score": score(doc)})
            for doc in ranked
        ]


@app(
    "documents that a reranker scores",
    question="how long is the warranty of the drill",
    answer="The drill has a warranty of five years. The battery is included.",
    chunks=["The warranty of the drill is five years."],
    absent=["The warranty of the saw is two years."],
    invented=["The battery is included."],
)
def reranked(config):
    retriever = ContextualCompressionRetriever(
        base_retriever=finding(
            "The warranty of the saw is two years.", "The warranty of the drill is five years."
        ),
        base_compressor=DocumentCompressorPipeline(transformers=[CrossEncoder()]),
    )
    rag(retriever, "The drill has a warranty of five years. The battery is included.").invoke(
        "how long is the warranty of the drill", config
    )


@app(
    "a store that searches for different texts",
    question="violin strings gut",
    answer="Gut strings sound warmer on a violin.",
    chunks=["Gut strings on a violin sound warm."],
    absent=["The harbour freezes in January."],
)
def different_texts(config):
    texts = store("Gut strings on a violin sound warm.", "The harbour freezes in January.")
    retriever = texts.as_retriever(search_type="mmr", search_kwargs={"k": 1, "fetch_k": 2})
    rag(retriever, "Gut strings sound warmer on a violin.").invoke("violin strings gut", config)


@app(
    "parents of small chunks",
    question="What happens if I cancel late?",
    answer="After the tenth day you pay half the price.",
    chunks=[
        "Cancelling is free until the tenth day before the journey.",
        "After the tenth day half of the price is due.",
    ],
)
def parents(config):
    retriever = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(Hashed()),
        docstore=InMemoryStore(),
        child_splitter=RecursiveCharacterTextSplitter(chunk_size=60, chunk_overlap=0),
    )
    retriever.add_documents(
        [
            Document(
                "Cancelling is free until the tenth day before the journey.\n"
                "After the tenth day half of the price is due."
            )
        ]
    )
    rag(retriever, "After the tenth day you pay half the price.").invoke(
        "What happens if I cancel late?", config
    )


@app(
    "originals behind summaries",
    question="what does the table of tides show",
    answer="It shows low water at noon.",
    chunks=["| time | level |\n| 12:00 | low |\n| 18:00 | high |"],
    absent=["summary of the table of tides"],
)
def originals(config):
    retriever = MultiVectorRetriever(
        vectorstore=InMemoryVectorStore(Hashed()), docstore=InMemoryStore(), id_key="doc_id"
    )
    retriever.vectorstore.add_documents(
        [Document("summary of the table of tides", metadata={"doc_id": "t-1"})]
    )
    retriever.docstore.mset(
        [("t-1", Document("| time | level |\n| 12:00 | low |\n| 18:00 | high |"))]
    )
    rag(retriever, "It shows low water at noon.").invoke(
        "what does the table of tides show", config
    )


@app(
    "merged retrievers, one of which finds nothing",
    question="Was kostet die Fähre für Radfahrer?",
    answer="Radfahrer zahlen 6 Euro.",
    chunks=["Die Fähre kostet für Radfahrer 6 Euro."],
)
def merged(config):
    retriever = MergerRetriever(
        retrievers=[finding(), finding("Die Fähre kostet für Radfahrer 6 Euro.")]
    )
    rag(retriever, "Radfahrer zahlen 6 Euro.").invoke("Was kostet die Fähre für Radfahrer?", config)


@app(
    "a search with scores in a decorated function",
    question="Where does the swift nest?",
    answer="Swifts nest under roofs.",
    chunks=["Swifts nest under the roofs of old houses."],
)
def with_scores(config):
    texts = store("Swifts nest under the roofs of old houses.")

    @chain
    def search(query):
        docs, scores = zip(*texts.similarity_search_with_score(query, k=1), strict=True)
        for doc, score in zip(docs, scores, strict=True):
            doc.metadata["score"] = score
        return list(docs)

    rag(search, "Swifts nest under roofs.").invoke("Where does the swift nest?", config)


@app(
    "neighbours of a passage added by code",
    question="What comes after proofing?",
    answer="After proofing the loaf is scored and baked.",
    prompt=["Let it proof for two hours.", "Score the loaf.", "Bake it at 250 degrees."],
)
def neighbours(config):
    steps = ["Let it proof for two hours.", "Score the loaf.", "Bake it at 250 degrees."]

    @chain
    def with_neighbours(query):
        (hit,) = finding(steps[1]).invoke(query)
        place = steps.index(hit.page_content)
        return "\n".join(steps[place - 1 : place + 2])

    application = (
        {"context": with_neighbours, "question": RunnablePassthrough()}
        | PROMPT
        | chat("After proofing the loaf is scored and baked.")
        | StrOutputParser()
    )
    application.invoke("What comes after proofing?", config)


@app(
    "documents in another order, shortened",
    question="What does the guide say about bears?",
    answer="Make noise and store food in boxes.",
    chunks=["Bears avoid people who make noise.", "Food is stored in bear boxes."],
    absent=["The end of this long passage about berries is cut off."],
)
def shortened(config):
    texts = [
        "Food is stored in bear boxes. The end of this long passage about berries is cut off.",
        "Bears avoid people who make noise.",
    ]

    def shorten(docs):
        return "\n\n".join(doc.page_content[:36].partition(" The")[0] for doc in reversed(docs))

    application = (
        {"context": finding(*texts) | shorten, "question": RunnablePassthrough()}
        | PROMPT
        | chat("Make noise and store food in boxes.")
    )
    application.invoke("What does the guide say about bears?", config)


@app(
    "a step back to a broader question",
    question="Could the Beagle sail to windward in 1832?",
    answer="Yes, brigs like the Beagle could sail to windward, though slowly.",
    chunks=[
        "The Beagle was rigged as a barque.",
        "Square-rigged ships point six points off the wind.",
    ],
    absent=["How do sailing ships move against the wind?"],
)
def step_back(config):
    broader = (
        ChatPromptTemplate.from_template("Ask more broadly: {question}")
        | chat("How do sailing ships move against the wind?")
        | StrOutputParser()
    )
    prompt = ChatPromptTemplate.from_template(
        "{normal_context}\n{step_back_context}\n\nOriginal Question: {question}"
    )
    application = (
        {
            "normal_context": itemgetter("question")
            | finding("The Beagle was rigged as a barque.")
            | joined,
            "step_back_context": broader
            | finding("Square-rigged ships point six points off the wind.")
            | joined,
            "question": itemgetter("question"),
        }
        | prompt
        | chat("Yes, brigs like the Beagle could sail to windward, though slowly.")
        | StrOutputParser()
    )
    application.invoke({"question": "Could the Beagle sail to windward in 1832?"}, config)
