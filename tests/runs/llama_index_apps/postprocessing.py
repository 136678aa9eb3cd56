"""What happens to nodes between search and model."""

from harness import app
from llama_index.core import Document, PromptTemplate, VectorStoreIndex
from llama_index.core.node_parser import SentenceWindowNodeParser
from llama_index.core.postprocessor import (
    FixedRecencyPostprocessor,
    LLMRerank,
    LongContextReorder,
    MetadataReplacementPostProcessor,
    PrevNextNodePostprocessor,
    SentenceEmbeddingOptimizer,
    SimilarityPostprocessor,
)
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.schema import MetadataMode, NodeRelationship, NodeWithScore, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index_fakes import Shelf, WordEmbedding, index, scored, talker, writer

VISA = "Citizens of Chile need no visa for stays of up to 90 days."
PASSPORT = "The passport must be valid for six months after entry."
CUSTOMS = "Two litres of wine may be brought in free of duty."


def engine(found, *steps, llm, **settings):
    return RetrieverQueryEngine.from_args(
        found, llm=llm, node_postprocessors=list(steps), **settings
    )


@app(
    "nodes below a similarity are dropped",
    question="Do Chileans need a visa?",
    answer="No, for up to 90 days they do not.",
    chunks=[VISA],
    absent=[CUSTOMS],
)
def similarity():
    found = Shelf(scored(VISA, 0.9), scored(CUSTOMS, 0.2))
    engine(
        found,
        SimilarityPostprocessor(similarity_cutoff=0.5),
        llm=writer("No, for up to 90 days they do not."),
    ).query("Do Chileans need a visa?")


@app(
    "nodes with a forbidden word are dropped",
    question="Do Chileans need a visa?",
    answer="They need none, but a passport that is valid for six months.",
    chunks=[VISA, PASSPORT],
    absent=[CUSTOMS],
)
def keywords():
    # The processor itself wants spaCy; applications write this one in three lines.
    class Without(BaseNodePostprocessor):
        word: str

        def _postprocess_nodes(self, nodes, query_bundle=None):
            return [node for node in nodes if self.word not in node.text]

    engine(
        Shelf(VISA, CUSTOMS, PASSPORT),
        Without(word="wine"),
        llm=talker("They need none, but a passport that is valid for six months."),
    ).query("Do Chileans need a visa?")


@app(
    "a model chooses and ranks the nodes",
    question="What may I bring into the country?",
    answer="Two litres of wine are free of duty.",
    chunks=[CUSTOMS],
    absent=["Doc: 2, Relevance: 9"],
)
def reranked_by_model():
    llm = writer("Doc: 2, Relevance: 9", "Two litres of wine are free of duty.")
    engine(Shelf(VISA, CUSTOMS, PASSPORT), LLMRerank(llm=llm, top_n=1), llm=llm).query(
        "What may I bring into the country?"
    )


@app(
    "a model ranks two nodes out of three",
    question="What do I need to enter?",
    answer="A passport valid for six months, and no visa.",
    chunks=[PASSPORT, VISA],
    absent=["Doc: 3, Relevance: 10"],
)
def reranked_two():
    llm = talker(
        "Doc: 3, Relevance: 10\nDoc: 1, Relevance: 8",
        "A passport valid for six months, and no visa.",
    )
    engine(Shelf(VISA, CUSTOMS, PASSPORT), LLMRerank(llm=llm, top_n=2), llm=llm).query(
        "What do I need to enter?"
    )


@app(
    "the best nodes go to the ends of a long context",
    question="What are the rules for entering?",
    answer="A valid passport, no visa, and two litres of wine at most.",
    chunks=[VISA, PASSPORT, CUSTOMS],
)
def reordered():
    found = Shelf(scored(VISA, 0.9), scored(PASSPORT, 0.8), scored(CUSTOMS, 0.7))
    engine(
        found,
        LongContextReorder(),
        llm=writer("A valid passport, no visa, and two litres of wine at most."),
    ).query("What are the rules for entering?")


STORY = (
    "The ferry leaves at seven. It carries forty cars. Dogs must stay on deck. "
    "The crossing takes two hours. A cafe sells soup. The harbour closes at midnight."
)


@app(
    "sentences that are replaced by the window around them",
    question="Where must dogs stay on the ferry?",
    answer="On deck, during the two hours of the crossing.",
    chunks=["It carries forty cars. Dogs must stay on deck. The crossing takes two hours."],
    absent=["The harbour closes at midnight."],
)
def sentence_window():
    parser = SentenceWindowNodeParser.from_defaults(
        window_size=1, window_metadata_key="window", original_text_metadata_key="original_text"
    )
    nodes = parser.get_nodes_from_documents([Document(text=STORY)])
    VectorStoreIndex(nodes, embed_model=WordEmbedding()).as_query_engine(
        similarity_top_k=1,
        llm=writer("On deck, during the two hours of the crossing."),
        node_postprocessors=[MetadataReplacementPostProcessor(target_metadata_key="window")],
    ).query("Where must dogs stay on the ferry?")


@app(
    "neighbours of a node are fetched from the store",
    question="How long does the cheese ripen?",
    answer="Nine weeks in the cellar, turned every day.",
    chunks=["The cheese ripens for nine weeks.", "In the cellar it is turned every day."],
)
def neighbours():
    first = TextNode(text="The cheese ripens for nine weeks.", id_="a")
    second = TextNode(text="In the cellar it is turned every day.", id_="b")
    first.relationships[NodeRelationship.NEXT] = second.as_related_node_info()
    second.relationships[NodeRelationship.PREVIOUS] = first.as_related_node_info()
    store = SimpleDocumentStore()
    store.add_documents([first, second])
    engine(
        Shelf(first),
        PrevNextNodePostprocessor(docstore=store, num_nodes=1, mode="next"),
        llm=talker("Nine weeks in the cellar, turned every day."),
    ).query("How long does the cheese ripen?")


@app(
    "only the newest version of a rule",
    question="How many guests may the hall hold?",
    answer="120 guests.",
    chunks=["The hall may hold 120 guests."],
    prompt=["date: 2025-03-01"],
    absent=["The hall may hold 200 guests."],
)
def newest():
    found = Shelf(
        scored("The hall may hold 200 guests.", metadata={"date": "2019-05-01"}),
        scored("The hall may hold 120 guests.", metadata={"date": "2025-03-01"}),
    )
    engine(found, FixedRecencyPostprocessor(top_k=1), llm=writer("120 guests.")).query(
        "How many guests may the hall hold?"
    )


@app(
    "sentences of a node that have nothing to do with the question are cut",
    question="Where must dogs stay?",
    answer="Dogs have to stay on deck.",
    chunks=["Dogs must stay on deck."],
    absent=["A cafe sells soup."],
)
def optimised():
    step = SentenceEmbeddingOptimizer(
        embed_model=WordEmbedding(),
        percentile_cutoff=0.2,
        tokenizer_fn=lambda text: [each.strip() + "." for each in text.split(".") if each.strip()],
    )
    engine(Shelf(STORY), step, llm=writer("Dogs have to stay on deck.")).query(
        "Where must dogs stay?"
    )


class Warn(BaseNodePostprocessor):
    """Adds a text of the editors' to every node, as banners and disclaimers are."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        return [
            NodeWithScore(
                node=TextNode(
                    text=f"{node.text}\n(Editor's note: checked in June, prices rose by 4 percent.)"
                ),
                score=node.score,
            )
            for node in nodes
        ]


@app(
    "a postprocessor that adds a note to every node",
    question="What does the permit cost?",
    answer="The permit costs 30 euros; since June prices are 4 percent higher.",
    chunks=["The permit costs 30 euros."],
    prompt=["Editor's note: checked in June, prices rose by 4 percent."],
)
def noted():
    engine(
        Shelf("The permit costs 30 euros."),
        Warn(),
        llm=talker("The permit costs 30 euros; since June prices are 4 percent higher."),
    ).query("What does the permit cost?")


class Compress(BaseNodePostprocessor):
    """Has a model shorten every node."""

    llm: object

    def _postprocess_nodes(self, nodes, query_bundle=None):
        short = []
        for node in nodes:
            said = self.llm.complete(
                f"Shorten for the question {query_bundle.query_str!r}:\n{node.text}"
            )
            short.append(NodeWithScore(node=TextNode(text=said.text), score=node.score))
        return short


@app(
    "a model shortens the nodes, and its summary is no evidence",
    question="When does the museum open?",
    answer="At ten. On Mondays it is free.",
    chunks=["The museum opens its doors at ten o'clock from Tuesday to Sunday."],
    absent=["Opens ten, free on Mondays for all."],
    invented=["On Mondays it is free."],
)
def compressed():
    llm = writer("Opens ten, free on Mondays for all.", "At ten. On Mondays it is free.")
    engine(
        Shelf("The museum opens its doors at ten o'clock from Tuesday to Sunday."),
        Compress(llm=llm),
        llm=llm,
    ).query("When does the museum open?")


@app(
    "small pieces are merged into the page they are from",
    question="What did the inspectors find?",
    answer="Rust on two pillars and a loose rail.",
    chunks=["Inspectors found rust on two pillars. A rail was loose."],
)
def merged():
    page = TextNode(text="Inspectors found rust on two pillars. A rail was loose.", id_="page")
    pieces = [
        TextNode(text="Inspectors found rust on two pillars.", id_="p1"),
        TextNode(text="A rail was loose.", id_="p2"),
    ]
    for piece in pieces:
        piece.relationships[NodeRelationship.PARENT] = page.as_related_node_info()
    page.relationships[NodeRelationship.CHILD] = [piece.as_related_node_info() for piece in pieces]
    made = VectorStoreIndex(pieces, embed_model=WordEmbedding())
    made.storage_context.docstore.add_documents([page, *pieces])
    retriever = AutoMergingRetriever(
        made.as_retriever(similarity_top_k=2), made.storage_context, verbose=False
    )
    engine(retriever, llm=writer("Rust on two pillars and a loose rail.")).query(
        "What did the inspectors find?"
    )


@app(
    "metadata in the form of a template",
    question="Which file has the salary table?",
    answer="It is on page 4 of salaries.pdf; an apprentice earns 1,100 euros.",
    chunks=["An apprentice earns 1,100 euros a month."],
    prompt=["<file_name>salaries.pdf</file_name>", "<page>4</page>"],
    absent=["md5 77aa"],
)
def metadata_template():
    document = Document(
        text="An apprentice earns 1,100 euros a month.",
        metadata={"file_name": "salaries.pdf", "page": 4, "hash": "md5 77aa"},
        excluded_llm_metadata_keys=["hash"],
        metadata_template="<{key}>{value}</{key}>",
        text_template="Metadata: {metadata_str}\n-----\nContent: {content}",
    )
    said = "It is on page 4 of salaries.pdf; an apprentice earns 1,100 euros."
    index(document).as_query_engine(llm=talker(said)).query("Which file has the salary table?")


@app(
    "facts that are in the metadata only",
    question="Who wrote the memo on parking?",
    answer="Ines Duarte wrote it in May.",
    chunks=["Staff may park on level two."],
    prompt=["author: Ines Duarte", "month: May"],
)
def metadata_only():
    document = Document(
        text="Staff may park on level two.", metadata={"author": "Ines Duarte", "month": "May"}
    )
    index(document).as_query_engine(llm=writer("Ines Duarte wrote it in May.")).query(
        "Who wrote the memo on parking?"
    )


@app(
    "nodes whose metadata the function writes beside each",
    question="Which supplier is cheapest?",
    answer="Nordholz, at 12 euros a metre.",
    chunks=["Oak boards, planed, 12 euros a metre.", "Oak boards, rough, 15 euros a metre."],
    prompt=["supplier=Nordholz rating=4.5", "supplier=Ekwood rating=3.9"],
)
def metadata_by_hand():
    found = Shelf(
        scored(
            "Oak boards, planed, 12 euros a metre.",
            metadata={"supplier": "Nordholz", "rating": 4.5},
        ),
        scored(
            "Oak boards, rough, 15 euros a metre.", metadata={"supplier": "Ekwood", "rating": 3.9}
        ),
    )

    class Beside(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes, query_bundle=None):
            return [
                NodeWithScore(
                    node=TextNode(
                        text=f"{n.node.get_content(MetadataMode.NONE)} "
                        f"[supplier={n.metadata['supplier']} rating={n.metadata['rating']}]"
                    ),
                    score=n.score,
                )
                for n in nodes
            ]

    template = PromptTemplate("Offers:\n{context_str}\n\n{query_str}")
    engine(
        found, Beside(), llm=writer("Nordholz, at 12 euros a metre."), text_qa_template=template
    ).query("Which supplier is cheapest?")


@app(
    "a postprocessor that answers from a better store altogether",
    question="How deep is the lake?",
    answer="It is 81 metres deep.",
    chunks=["Survey of 2024: the lake is 81 metres deep."],
    absent=["The lake is said to have no bottom."],
)
def replaced():
    class Replace(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes, query_bundle=None):
            return [scored("Survey of 2024: the lake is 81 metres deep.")]

    engine(
        Shelf("The lake is said to have no bottom."), Replace(), llm=talker("It is 81 metres deep.")
    ).query("How deep is the lake?")


@app(
    "everything is dropped, and the engine says that there is nothing",
    status=["no_answer"],
)
def nothing_left():
    engine(
        Shelf(scored(CUSTOMS, 0.1)),
        SimilarityPostprocessor(similarity_cutoff=0.7),
        llm=writer("never asked"),
    ).query("Do Chileans need a visa?")
