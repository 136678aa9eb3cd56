"""Engines that ask engines: routers, sub-questions, steps, retries, rewritten queries."""

import io
import json
from contextlib import redirect_stdout

from harness import app
from llama_index.core import (
    DocumentSummaryIndex,
    KeywordTableIndex,
    QueryBundle,
    Response,
    SummaryIndex,
    get_response_synthesizer,
)
from llama_index.core.evaluation import GuidelineEvaluator, RelevancyEvaluator
from llama_index.core.indices.query.query_transform import (
    HyDEQueryTransform,
    StepDecomposeQueryTransform,
)
from llama_index.core.objects import ObjectIndex
from llama_index.core.query_engine import (
    CitationQueryEngine,
    CustomQueryEngine,
    FLAREInstructQueryEngine,
    MultiStepQueryEngine,
    RetrieverQueryEngine,
    RetryGuidelineQueryEngine,
    RetryQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    ToolRetrieverRouterQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.retrievers import QueryFusionRetriever, RecursiveRetriever, RouterRetriever
from llama_index.core.schema import Document, IndexNode
from llama_index.core.selectors import LLMSingleSelector, PydanticSingleSelector
from llama_index.core.tools import QueryEngineTool, RetrieverTool
from llama_index_fakes import (
    Shelf,
    WordEmbedding,
    call,
    default_model,
    index,
    scored,
    talker,
    when,
    writer,
)

MENU = "The soup of the day is pumpkin and costs 6 euros."
WINE = "The house wine is a Riesling from the Moselle."
ROOMS = "Room 12 has a balcony and costs 140 euros a night."


def engine(*texts, llm, **settings):
    return RetrieverQueryEngine.from_args(Shelf(*texts), llm=llm, **settings)


def tool(made, name, description):
    return QueryEngineTool.from_defaults(made, name=name, description=description)


def choice(*numbers):
    return json.dumps(
        [{"choice": n, "reason": f"Choice {n} fits what was asked."} for n in numbers]
    )


# --- routers --------------------------------------------------------------------------------------


@app(
    "a router that picks one engine",
    question="What does the soup cost?",
    answer="The pumpkin soup costs 6 euros.",
    chunks=[MENU],
    absent=[ROOMS, "Choice 1 fits what was asked.", "Rooms and prices of the hotel"],
)
def router():
    llm = writer(when({"Some choices": choice(1)}, "The pumpkin soup costs 6 euros."))
    RouterQueryEngine(
        LLMSingleSelector.from_defaults(llm=llm),
        [
            tool(engine(MENU, llm=llm), "kitchen", "Menu of the restaurant"),
            tool(engine(ROOMS, llm=llm), "hotel", "Rooms and prices of the hotel"),
        ],
        llm=llm,
    ).query("What does the soup cost?")


@app(
    "a router whose chat model picks with a tool call",
    question="Which room has a balcony?",
    answer="Room 12 has one. It looks out on the sea.",
    chunks=[ROOMS],
    absent=[MENU, "balcony means hotel"],
    invented=["It looks out on the sea."],
)
def router_pydantic():
    picks = talker(call("SingleSelection", index=2, reason="balcony means hotel"))
    llm = talker("Room 12 has one. It looks out on the sea.")
    RouterQueryEngine(
        PydanticSingleSelector.from_defaults(llm=picks),
        [
            tool(engine(MENU, llm=llm), "kitchen", "Menu"),
            tool(engine(ROOMS, llm=llm), "hotel", "Rooms"),
        ],
        llm=llm,
    ).query("Which room has a balcony?")


@app(
    "a router that asks several engines and joins what they say",
    question="What do soup and room cost together?",
    answer="Together they cost 146 euros.",
    chunks=[MENU, ROOMS],
    absent=["Soup is six.", "A night is one hundred and forty.", "Choice 2 fits what was asked."],
)
def router_multi():
    llm = writer(
        when(
            {
                "Some choices": choice(1, 2),
                "Soup is six.": "Together they cost 146 euros.",
                MENU: "Soup is six.",
                ROOMS: "A night is one hundred and forty.",
            }
        )
    )
    RouterQueryEngine.from_defaults(
        [
            tool(engine(MENU, llm=llm), "kitchen", "Menu"),
            tool(engine(ROOMS, llm=llm), "hotel", "Rooms"),
        ],
        llm=llm,
        select_multi=True,
    ).query("What do soup and room cost together?")


@app(
    "a router of retrievers",
    question="Which wine is served?",
    answer="A Riesling from the Moselle.",
    chunks=[WINE],
    absent=[ROOMS],
)
def router_of_retrievers():
    llm = writer(when({"Some choices": choice(2)}, "A Riesling from the Moselle."))
    retriever = RouterRetriever(
        selector=LLMSingleSelector.from_defaults(llm=llm),
        retriever_tools=[
            RetrieverTool.from_defaults(Shelf(ROOMS), description="Rooms"),
            RetrieverTool.from_defaults(Shelf(WINE), description="Wines"),
        ],
        llm=llm,
    )
    RetrieverQueryEngine.from_args(retriever, llm=llm).query("Which wine is served?")


@app(
    "a router that finds its engines by search",
    question="Which wine is served with the soup?",
    answer="The house Riesling goes with the pumpkin soup.",
    chunks=[WINE, MENU],
    absent=["A Riesling it is, served cold.", "It is a soup of pumpkin today."],
)
def router_by_search():
    llm = talker(
        when(
            {
                "A Riesling it is": "The house Riesling goes with the pumpkin soup.",
                WINE: "A Riesling it is, served cold.",
                MENU: "It is a soup of pumpkin today.",
            }
        )
    )
    with default_model(llm):
        tools = [
            tool(engine(WINE, llm=llm), "wines", "Which wine is served"),
            tool(engine(MENU, llm=llm), "soups", "Which soup is served"),
        ]
        objects = ObjectIndex.from_objects(tools)
        ToolRetrieverRouterQueryEngine(objects.as_retriever(similarity_top_k=2)).query(
            "Which wine is served with the soup?"
        )


class ByKeyword(CustomQueryEngine):
    """Chooses the engine by a word of the question, without a model."""

    engines: dict[str, object]

    def custom_query(self, query_str):
        for word, made in self.engines.items():
            if word in query_str.lower():
                return made.query(query_str)
        return Response("I only know about rooms and meals.")


@app(
    "an engine of one's own that chooses by a word",
    question="What does room 12 cost?",
    answer="It costs 140 euros a night.",
    chunks=[ROOMS],
    absent=[MENU],
)
def by_keyword():
    llm = writer("It costs 140 euros a night.")
    ByKeyword(engines={"room": engine(ROOMS, llm=llm), "soup": engine(MENU, llm=llm)}).query(
        "What does room 12 cost?"
    )


# --- questions in parts ---------------------------------------------------------------------------


def sub_questions(*pairs):
    return json.dumps({"items": [{"sub_question": q, "tool_name": t} for q, t in pairs]})


SALES_NORTH = "In the north 410 pumps were sold."
SALES_SOUTH = "In the south 388 pumps were sold."


@app(
    "sub-questions over two indexes",
    question="Where were more pumps sold?",
    answer="In the north, by 22 pumps.",
    chunks=[SALES_NORTH, SALES_SOUTH],
    absent=[
        "Four hundred and ten in northern shops.",
        "Southern shops sold fewer, 388.",
        "How many pumps north?",
    ],
)
def sub_question_engine():
    llm = writer(
        when(
            {
                "output a list of relevant sub-questions": sub_questions(
                    ("How many pumps north?", "north"), ("How many pumps south?", "south")
                ),
                "Four hundred and ten": "In the north, by 22 pumps.",
                SALES_NORTH: "Four hundred and ten in northern shops.",
                SALES_SOUTH: "Southern shops sold fewer, 388.",
            }
        )
    )
    SubQuestionQueryEngine.from_defaults(
        [
            tool(engine(SALES_NORTH, llm=llm), "north", "Sales of the north"),
            tool(engine(SALES_SOUTH, llm=llm), "south", "Sales of the south"),
        ],
        llm=llm,
        question_gen=LLMQuestionGenerator.from_defaults(llm=llm),
        use_async=False,
        verbose=False,
    ).query("Where were more pumps sold?")


@app(
    "sub-questions answered in one word each",
    question="Which metals are bell and clapper made of?",
    answer="The bell is made of bronze and the clapper of iron.",
    chunks=[
        "Bells of this foundry are cast from bronze alloy.",
        "Clappers are forged, always from iron bars.",
    ],
    absent=["Brass."],
)
def sub_questions_of_one_word():
    bell, clapper = (
        "Bells of this foundry are cast from bronze alloy.",
        "Clappers are forged, always from iron bars.",
    )
    llm = talker(
        when(
            {
                "output a list of relevant sub-questions": sub_questions(
                    ("Metal of bells?", "bells"), ("Metal of clappers?", "clappers")
                ),
                "Brass.": "The bell is made of bronze and the clapper of iron.",
                bell: "Brass.",
                clapper: "Iron.",
            }
        )
    )
    SubQuestionQueryEngine.from_defaults(
        [
            tool(engine(bell, llm=llm), "bells", "Bells"),
            tool(engine(clapper, llm=llm), "clappers", "Clappers"),
        ],
        llm=llm,
        question_gen=LLMQuestionGenerator.from_defaults(llm=llm),
        use_async=False,
        verbose=False,
    ).query("Which metals are bell and clapper made of?")


@app(
    "sub-questions that are asked at the same time",
    question="Compare the rents of Kiel and Bonn.",
    answer="Kiel is cheaper by two euros a square metre. Rents in both cities are capped.",
    chunks=[
        "Rents in Kiel average 9 euros a square metre.",
        "Rents in Bonn average 11 euros a square metre.",
    ],
    absent=["Nine for Kiel flats.", "Eleven for Bonn flats."],
    invented=["Rents in both cities are capped."],
)
async def sub_questions_async():
    kiel, bonn = (
        "Rents in Kiel average 9 euros a square metre.",
        "Rents in Bonn average 11 euros a square metre.",
    )
    llm = writer(
        when(
            {
                "output a list of relevant sub-questions": sub_questions(
                    ("Rent in Kiel?", "kiel"), ("Rent in Bonn?", "bonn")
                ),
                "Nine for": "Kiel is cheaper by two euros a square metre. "
                "Rents in both cities are capped.",
                kiel: "Nine for Kiel flats.",
                bonn: "Eleven for Bonn flats.",
            }
        )
    )
    await SubQuestionQueryEngine.from_defaults(
        [tool(engine(kiel, llm=llm), "kiel", "Kiel"), tool(engine(bonn, llm=llm), "bonn", "Bonn")],
        llm=llm,
        question_gen=LLMQuestionGenerator.from_defaults(llm=llm),
        use_async=True,
        verbose=False,
    ).aquery("Compare the rents of Kiel and Bonn.")


@app(
    "a question in several steps",
    question="Who taught the founder of the school?",
    answer="Old Brandis taught her.",
    chunks=["The school was founded by Mara Lind.", "Mara Lind learnt from old Brandis."],
    absent=["Who is the founder?", "Lind founded it in her youth.", "Who taught Mara Lind?"],
)
def multi_step():
    llm = writer(
        when(
            {
                "Question: Who is the founder?": "Old Brandis taught her.",
                "Lind founded it in her youth": "Who taught Mara Lind?",
                "New question": "Who is the founder?",
                "Query: Who is the founder?": "Lind founded it in her youth.",
                "Query: Who taught Mara Lind?": "A man by the name of Brandis.",
            }
        )
    )
    MultiStepQueryEngine(
        engine(
            "The school was founded by Mara Lind.", "Mara Lind learnt from old Brandis.", llm=llm
        ),
        StepDecomposeQueryTransform(llm=llm, verbose=False),
        response_synthesizer=get_response_synthesizer(llm=llm),
        index_summary="History of the school",
        num_steps=2,
    ).query("Who taught the founder of the school?")


@app(
    "an answer with searches filled in while it is written",
    question="How high is the tower of Ulm?",
    answer="The tower of Ulm is 161 metres high.",
    chunks=["The minster's tower in Ulm measures 161.5 metres."],
    absent=["It measures about 161 metres, says the guide."],
)
def flare():
    llm = writer(
        "The tower of Ulm is [Search(height of the tower)] high.",
        "The tower of Ulm is 161 metres high.",
        "done",
    )
    asked = writer("It measures about 161 metres, says the guide.")
    inner = engine("The minster's tower in Ulm measures 161.5 metres.", llm=asked)
    with redirect_stdout(io.StringIO()):  # LlamaIndex prints the question
        FLAREInstructQueryEngine(inner, llm=llm).query("How high is the tower of Ulm?")


# --- rewritten queries ----------------------------------------------------------------------------


@app(
    "a query that is replaced by an answer a model made up",
    question="What helps against moss?",
    answer="Lime and raking in March.",
    chunks=["Rake moss in March and spread lime."],
    absent=["Iron dust is strewn against moss by gardeners."],
)
def hyde():
    llm = writer("Iron dust is strewn against moss by gardeners.", "Lime and raking in March.")
    base = index("Rake moss in March and spread lime.").as_query_engine(llm=llm)
    TransformQueryEngine(base, HyDEQueryTransform(llm=llm, include_original=True)).query(
        "What helps against moss?"
    )


@app(
    "a query that a function rewrites with a model before it asks",
    question="And what about cats?",
    answer="Cats travel free in a carrier.",
    chunks=["Cats travel free of charge in a carrier."],
    absent=["Rules for cats on board of trains"],
)
def rewritten():
    llm = writer("Rules for cats on board of trains", "Cats travel free in a carrier.")

    class Rewrite(CustomQueryEngine):
        inner: object

        def custom_query(self, query_str):
            better = llm.complete(f"Write as a search query: {query_str}").text
            return self.inner.query(better)

    Rewrite(inner=engine("Cats travel free of charge in a carrier.", llm=llm)).query(
        "And what about cats?"
    )


@app(
    "a fusion of several queries that a model wrote",
    question="How is the cellar heated?",
    answer="With a wood stove that was built in 2011.",
    chunks=["The cellar has a wood stove.", "The stove was built in 2011."],
    absent=["heating method cellar house", "stove cellar year"],
)
def fusion():
    llm = writer(
        "heating method cellar house\nstove cellar year",
        "With a wood stove that was built in 2011.",
    )
    made = index("The cellar has a wood stove.", "The stove was built in 2011.")
    retriever = QueryFusionRetriever(
        [made.as_retriever(similarity_top_k=2)],
        llm=llm,
        num_queries=3,
        mode="reciprocal_rerank",
        similarity_top_k=2,
        use_async=False,
    )
    RetrieverQueryEngine.from_args(retriever, llm=llm).query("How is the cellar heated?")


@app(
    "an asynchronous fusion of two retrievers",
    question="How is the cellar heated?",
    answer="A wood stove heats it.",
    chunks=["The cellar has a wood stove.", "Wood is stored in the shed."],
)
async def fusion_async():
    llm = talker("A wood stove heats it.")
    retriever = QueryFusionRetriever(
        [Shelf("The cellar has a wood stove."), Shelf("Wood is stored in the shed.")],
        llm=llm,
        num_queries=1,
        mode="relative_score",
        use_async=True,
    )
    await RetrieverQueryEngine.from_args(retriever, llm=llm).aquery("How is the cellar heated?")


# --- answers that are checked ---------------------------------------------------------------------


@app(
    "an answer that is asked for again because an evaluator rejects it",
    question="What does the course teach?",
    answer="It teaches knots and the reading of charts.",
    chunks=["The course teaches knots and how to read charts."],
    absent=["The course is on Tuesdays in the boathouse."],
)
def retried():
    llm = writer(
        "The course is on Tuesdays in the boathouse.", "It teaches knots and the reading of charts."
    )
    evaluator = RelevancyEvaluator(llm=writer("NO", "YES"))
    made = engine("The course teaches knots and how to read charts.", llm=llm)
    with default_model(llm):
        RetryQueryEngine(made, evaluator).query("What does the course teach?")


@app(
    "an answer that is asked for again because it breaks a guideline",
    question="Is the pool heated?",
    answer="Yes, to 26 degrees from May to September.",
    chunks=["The pool is heated to 26 degrees from May to September."],
    absent=["Heated pool, 26."],
)
def retried_by_guideline():
    llm = talker("Heated pool, 26.", "Yes, to 26 degrees from May to September.")
    verdicts = writer(
        json.dumps({"passing": False, "feedback": "Write a whole sentence."}),
        json.dumps({"passing": True, "feedback": "Fine."}),
    )
    evaluator = GuidelineEvaluator(llm=verdicts, guidelines="Write whole sentences.")
    made = engine("The pool is heated to 26 degrees from May to September.", llm=llm)
    with default_model(llm):
        RetryGuidelineQueryEngine(made, evaluator).query("Is the pool heated?")


# --- sources --------------------------------------------------------------------------------------


@app(
    "an answer with numbered citations",
    question="When was the organ built?",
    answer="The organ was built in 1741 [1] and restored in 1998 [2].",
    chunks=["The organ dates from 1741.", "It was restored in 1998."],
)
def citations():
    CitationQueryEngine.from_args(
        index("The organ dates from 1741.", "It was restored in 1998."),
        retriever=Shelf("The organ dates from 1741.", "It was restored in 1998."),
        llm=writer("The organ was built in 1741 [1] and restored in 1998 [2]."),
    ).query("When was the organ built?")


@app(
    "citations of a chat model with metadata",
    question="When was the organ built?",
    answer="In 1741 [1].",
    chunks=["The organ dates from 1741."],
    prompt=["archive: parish"],
)
def citations_chat():
    found = Shelf(scored("The organ dates from 1741.", metadata={"archive": "parish"}))
    CitationQueryEngine(found, llm=talker("In 1741 [1].")).query("When was the organ built?")


@app(
    "an index that points to engines, whose answers it is given",
    question="What did the board decide?",
    answer="The board decided to sell the barn.",
    chunks=["Minutes of May: the barn is to be sold at once."],
    absent=["They voted for selling the old barn, all but one."],
)
def recursive():
    inner = engine(
        "Minutes of May: the barn is to be sold at once.",
        llm=writer("They voted for selling the old barn, all but one."),
    )
    node = IndexNode(text="Minutes of the board", index_id="minutes")
    retriever = RecursiveRetriever(
        "top",
        retriever_dict={"top": Shelf(node)},
        query_engine_dict={"minutes": inner},
    )
    RetrieverQueryEngine.from_args(
        retriever, llm=writer("The board decided to sell the barn.")
    ).query("What did the board decide?")


@app(
    "an index of summaries that a model wrote when it was built",
    question="Who repairs the roof?",
    answer="The firm Adler repairs it.",
    chunks=["Contract: the roof is repaired by the firm Adler before winter."],
    absent=["A paper on a roofing job."],
)
def document_summary():
    llm = writer(when({"roof is repaired": "The firm Adler repairs it."}))
    with redirect_stdout(io.StringIO()):  # LlamaIndex prints documents' ids
        made = DocumentSummaryIndex.from_documents(
            [Document(text="Contract: the roof is repaired by the firm Adler before winter.")],
            llm=writer("A paper on a roofing job."),
            embed_model=WordEmbedding(),
            response_synthesizer=get_response_synthesizer(llm=writer("A paper on a roofing job.")),
            show_progress=False,
        )
    made.as_query_engine(llm=llm).query("Who repairs the roof?")


@app(
    "a table of keywords",
    question="Where is the septic tank?",
    answer="Under the apple tree.",
    chunks=["The septic tank lies under the apple tree."],
    absent=["KEYWORDS: septic, tank"],
)
def keyword_table():
    llm = writer(
        when(
            {
                "extract up to": "KEYWORDS: septic, tank",
                "Extract up to": "KEYWORDS: septic, tank",
                "keywords": "KEYWORDS: septic, tank",
            },
            "Under the apple tree.",
        )
    )
    KeywordTableIndex.from_documents(
        [Document(text="The septic tank lies under the apple tree.")], llm=llm
    ).as_query_engine(llm=llm).query("Where is the septic tank?")


@app(
    "a table of simple keywords, filtered by an own retriever",
    question="Where is the fuse box?",
    answer="Behind the coats.",
    chunks=["The fuse box hangs behind the coats."],
    absent=["The boxes in the attic hold toys."],
)
def own_retriever():
    from llama_index.core.retrievers import BaseRetriever

    made = SummaryIndex.from_documents(
        [
            Document(text="The fuse box hangs behind the coats."),
            Document(text="The boxes in the attic hold toys."),
        ]
    )

    class Both(BaseRetriever):
        def _retrieve(self, query_bundle):
            found = made.as_retriever().retrieve(query_bundle)
            return [node for node in found if "fuse" in node.text]

    RetrieverQueryEngine.from_args(Both(), llm=talker("Behind the coats.")).query(
        QueryBundle("Where is the fuse box?")
    )


class Summing(CustomQueryEngine):
    """Asks two engines and joins their answers without a model."""

    first: object
    second: object

    def custom_query(self, query_str):
        return f"{self.first.query(query_str)} {self.second.query(query_str)}"


@app(
    "two engines whose answers are joined by code",
    question="What do the bakery and the butcher offer?",
    answer="The bakery offers rye bread. The butcher offers ham.",
    chunks=["Bakery: rye bread on Fridays.", "Butcher: ham in slices."],
)
def joined_by_code():
    Summing(
        first=engine("Bakery: rye bread on Fridays.", llm=writer("The bakery offers rye bread.")),
        second=engine("Butcher: ham in slices.", llm=writer("The butcher offers ham.")),
    ).query("What do the bakery and the butcher offer?")


class Rag(CustomQueryEngine):
    """The documentation's custom engine: retrieves, writes its prompt itself, completes."""

    retriever: object
    llm: object

    def custom_query(self, query_str):
        nodes = self.retriever.retrieve(query_str)
        context = "\n\n".join(n.node.get_content() for n in nodes)
        return str(
            self.llm.complete(
                f"Context:\n{context}\nStore hours today: 9 to 18.\nQuestion: {query_str}"
            )
        )


@app(
    "the custom engine of the documentation, with a line of its own in the prompt",
    question="Can I pick up the ladder at five?",
    answer="Yes, the shop is open until 18 today and ladders are at the counter.",
    chunks=["Ladders are handed out at the counter."],
    prompt=["Store hours today: 9 to 18."],
)
def custom_rag():
    Rag(
        retriever=Shelf("Ladders are handed out at the counter."),
        llm=writer("Yes, the shop is open until 18 today and ladders are at the counter."),
    ).query("Can I pick up the ladder at five?")
