"""Answers from databases, tables, JSON values and graphs."""

import io
import json
from contextlib import contextmanager, redirect_stdout

import pandas as pd
from harness import app
from llama_index.core import (
    KnowledgeGraphIndex,
    PromptTemplate,
    PropertyGraphIndex,
    SQLDatabase,
    StorageContext,
)
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.graph_stores import SimpleGraphStore, SimplePropertyGraphStore
from llama_index.core.graph_stores.types import EntityNode, Relation
from llama_index.core.indices.property_graph import LLMSynonymRetriever
from llama_index.core.indices.struct_store import JSONQueryEngine
from llama_index.core.objects import ObjectIndex, SQLTableNodeMapping, SQLTableSchema
from llama_index.core.query_engine import (
    CustomQueryEngine,
    NLSQLTableQueryEngine,
    RetrieverQueryEngine,
    RouterQueryEngine,
    SQLJoinQueryEngine,
    SQLTableRetrieverQueryEngine,
    SubQuestionQueryEngine,
)
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.retrievers import KnowledgeGraphRAGRetriever, NLSQLRetriever
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import QueryEngineTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index_fakes import (
    Shelf,
    WordEmbedding,
    call,
    default_model,
    memory,
    talker,
    when,
    writer,
)
from sqlalchemy import create_engine, text
from sqlalchemy.pool import StaticPool

ALPS = "The Alps depot was rebuilt in 2021 after a flood."


@contextmanager
def orders():
    """A database of depots with the orders they hold."""
    engine = create_engine(
        "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
    )
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE depots (name TEXT, orders INTEGER, chief TEXT)"))
        connection.execute(
            text("INSERT INTO depots VALUES ('Alps', 17, 'Moser'), ('Coast', 64, 'Jansen')")
        )
    try:
        yield SQLDatabase(engine)
    finally:
        engine.dispose()


def sql_engine(database, llm, **settings):
    return NLSQLTableQueryEngine(
        database, tables=["depots"], llm=llm, embed_model=WordEmbedding(), **settings
    )


@app(
    "a question to a database",
    question="How many orders does the Alps depot hold?",
    answer="The Alps depot holds 17 orders. That is a record.",
    prompt=["17"],
    invented=["That is a record."],
)
def text_to_sql():
    llm = writer(
        "SELECT orders FROM depots WHERE name = 'Alps'",
        "The Alps depot holds 17 orders. That is a record.",
    )
    with orders() as database:
        sql_engine(database, llm).query("How many orders does the Alps depot hold?")


@app(
    "a question to a database, several rows and columns",
    question="Who leads which depot?",
    answer="Moser leads the Alps depot and Jansen the Coast depot.",
    prompt=["Alps", "Moser", "Coast", "Jansen"],
)
def several_rows():
    llm = talker(
        "SELECT name, chief FROM depots", "Moser leads the Alps depot and Jansen the Coast depot."
    )
    with orders() as database:
        sql_engine(database, llm).query("Who leads which depot?")


@app(
    "a question to a database, asynchronous, over tables that a search chose",
    question="Which depot holds more orders?",
    answer="The Coast depot with 64 orders.",
    prompt=["64", "Coast"],
    allowed=["Table 'depots' has columns"],
)
async def table_retriever():
    llm = talker(
        "SELECT name, orders FROM depots ORDER BY orders DESC LIMIT 1",
        "The Coast depot with 64 orders.",
    )
    with orders() as database, default_model(llm):
        objects = ObjectIndex.from_objects(
            [SQLTableSchema(table_name="depots", context_str="depots and their orders")],
            SQLTableNodeMapping(database),
        )
        engine = SQLTableRetrieverQueryEngine(
            database, objects.as_retriever(similarity_top_k=1), llm=llm
        )
        await engine.aquery("Which depot holds more orders?")


@app(
    "rows that are retrieved and then answered from",
    question="Who leads the Coast depot?",
    answer="Jansen leads it.",
    prompt=["Jansen"],
)
def sql_retriever():
    llm = writer("SELECT chief FROM depots WHERE name = 'Coast'")
    with orders() as database:
        retriever = NLSQLRetriever(
            database, tables=["depots"], llm=llm, embed_model=WordEmbedding(), return_raw=True
        )
        RetrieverQueryEngine.from_args(retriever, llm=writer("Jansen leads it.")).query(
            "Who leads the Coast depot?"
        )


@app(
    "rows that become the answer without a model",
    question="How many orders has Coast?",
    answer=("64",),
    allowed=["64"],
    status="not_rag",
)
def without_synthesis():
    with orders() as database:
        sql_engine(
            database,
            writer("SELECT orders FROM depots WHERE name = 'Coast'"),
            synthesize_response=False,
        ).query("How many orders has Coast?")


@app(
    "a database joined with documents",
    question="How busy is the Alps depot, and what happened to it?",
    answer="It holds 17 orders and was rebuilt in 2021 after a flood.",
    chunks=[ALPS],
    prompt=["17"],
    absent=[
        "What happened to the Alps depot lately?",
        "A flood, then a new building in 2021.",
        "Seventeen orders are there.",
    ],
)
def sql_join():
    llm = writer(
        when(
            {
                "Some choices": json.dumps([{"choice": 1, "reason": "numbers"}]),
                "SQLQuery": "SELECT orders FROM depots WHERE name = 'Alps'",
                "A flood, then": "It holds 17 orders and was rebuilt in 2021 after a flood.",
                "New question": "What happened to the Alps depot lately?",
                "synthesize a response": "Seventeen orders are there.",
                ALPS: "A flood, then a new building in 2021.",
            }
        )
    )
    with orders() as database, redirect_stdout(io.StringIO()):
        SQLJoinQueryEngine(
            QueryEngineTool.from_defaults(
                sql_engine(database, llm), name="sql", description="Depots"
            ),
            QueryEngineTool.from_defaults(
                RetrieverQueryEngine.from_args(Shelf(ALPS), llm=llm),
                name="docs",
                description="News",
            ),
            selector=LLMSingleSelector.from_defaults(llm=llm),
            llm=llm,
            verbose=False,
        ).query("How busy is the Alps depot, and what happened to it?")


@app(
    "a router that picks the database",
    question="How many orders has Coast?",
    answer="Coast has 64 of them.",
    prompt=["64"],
    absent=[ALPS],
)
def router_to_sql():
    llm = talker(
        "SELECT orders FROM depots WHERE name = 'Coast'",
        "Coast has 64 of them.",
    )
    picks = writer(json.dumps([{"choice": 1, "reason": "a number is asked for"}]))
    with orders() as database:
        RouterQueryEngine(
            LLMSingleSelector.from_defaults(llm=picks),
            [
                QueryEngineTool.from_defaults(
                    sql_engine(database, llm), name="sql", description="Depots"
                ),
                QueryEngineTool.from_defaults(
                    RetrieverQueryEngine.from_args(Shelf(ALPS), llm=llm),
                    name="docs",
                    description="News",
                ),
            ],
            llm=llm,
        ).query("How many orders has Coast?")


@app(
    "sub-questions to a database and to documents",
    question="Is the busiest depot the one that was flooded?",
    answer="No: Coast is the busiest with 64 orders, and the Alps depot was flooded.",
    chunks=[ALPS],
    prompt=["64", "Coast"],
    absent=["The coast has most of all.", "It was the one in the Alps."],
)
def sub_questions():
    plan = json.dumps(
        {
            "items": [
                {"sub_question": "Busiest depot?", "tool_name": "sql"},
                {"sub_question": "Flooded depot?", "tool_name": "docs"},
            ]
        }
    )
    llm = writer(
        when(
            {
                "output a list of relevant sub-questions": plan,
                "SQLQuery": "SELECT name, orders FROM depots ORDER BY orders DESC LIMIT 1",
                "It was the one in the Alps.": "No: Coast is the busiest with 64 orders, "
                "and the Alps depot was flooded.",
                "synthesize a response": "The coast has most of all.",
                ALPS: "It was the one in the Alps.",
            }
        )
    )
    with orders() as database:
        SubQuestionQueryEngine.from_defaults(
            [
                QueryEngineTool.from_defaults(
                    sql_engine(database, llm), name="sql", description="Depots"
                ),
                QueryEngineTool.from_defaults(
                    RetrieverQueryEngine.from_args(Shelf(ALPS), llm=llm),
                    name="docs",
                    description="News",
                ),
            ],
            llm=llm,
            question_gen=LLMQuestionGenerator.from_defaults(llm=llm),
            use_async=False,
            verbose=False,
        ).query("Is the busiest depot the one that was flooded?")


@app(
    "an agent with a database and an index",
    question="What do we know about the Alps depot?",
    answer="It holds 17 orders and was rebuilt in 2021.",
    chunks=[ALPS],
    prompt=["17"],
    absent=["Orders there: seventeen.", "Rebuilt after a flood, they say."],
)
async def agent_with_database():
    sql = writer("SELECT orders FROM depots WHERE name = 'Alps'", "Orders there: seventeen.")
    with orders() as database:
        tools = [
            QueryEngineTool.from_defaults(
                sql_engine(database, sql), name="sql", description="Depots"
            ),
            QueryEngineTool.from_defaults(
                RetrieverQueryEngine.from_args(
                    Shelf(ALPS), llm=writer("Rebuilt after a flood, they say.")
                ),
                name="docs",
                description="News",
            ),
        ]
        llm = talker(
            [call("sql", input="orders of Alps"), call("docs", input="Alps")],
            "It holds 17 orders and was rebuilt in 2021.",
        )
        await FunctionAgent(tools=tools, llm=llm).run(
            "What do we know about the Alps depot?", memory=memory()
        )


@app(
    "an agent whose tool runs SQL that the model wrote",
    question="How many orders are there in all?",
    answer="81 orders in all depots.",
    prompt=["81"],
)
async def agent_runs_sql():
    with orders() as database:

        def run_sql(query: str) -> str:
            """Run a query."""
            return database.run_sql(query)[0]

        llm = talker(
            call("run_sql", query="SELECT SUM(orders) FROM depots"), "81 orders in all depots."
        )
        await FunctionAgent(tools=[run_sql], llm=llm).run(
            "How many orders are there in all?", memory=memory()
        )


@app(
    "a workflow from text to SQL to text",
    question="Who leads the Alps depot?",
    answer="The chief there is Moser.",
    prompt=["Moser"],
    status="not_rag",
)
async def sql_workflow():
    llm = talker("SELECT chief FROM depots WHERE name = 'Alps'", "The chief there is Moser.")
    with orders() as database:

        class TextToSql(Workflow):
            @step
            async def work(self, ev: StartEvent) -> StopEvent:
                sql = await llm.acomplete(
                    f"Schema: depots(name, orders, chief)\nSQL for: {ev.query}"
                )
                rows = database.run_sql(sql.text)[1]["result"]
                said = await llm.acomplete(f"Question: {ev.query}\nSQL: {sql.text}\nRows: {rows}")
                return StopEvent(result=said.text)

        await TextToSql(timeout=20).run(query="Who leads the Alps depot?")


@app(
    "rows beside documents in one prompt of an engine of one's own",
    question="Can the Alps depot take more orders?",
    answer="Yes, it holds only 17 orders and is new since 2021.",
    chunks=[ALPS],
    prompt=["17"],
)
def rows_beside_documents():
    class Both(CustomQueryEngine):
        database: object
        llm: object

        def custom_query(self, query_str):
            nodes = Shelf(ALPS).retrieve(query_str)
            with self.database.engine.connect() as connection:
                rows = connection.execute(
                    text("SELECT orders FROM depots WHERE name = 'Alps'")
                ).all()
            prompt = f"Orders: {rows}\nNews: {nodes[0].text}\nQuestion: {query_str}"
            return self.llm.complete(prompt).text

    with orders() as database:
        llm = talker("Yes, it holds only 17 orders and is new since 2021.")
        Both(database=database, llm=llm).query("Can the Alps depot take more orders?")


# --- tables and JSON ------------------------------------------------------------------------------


@app(
    "a table that is asked with code of the model's",
    question="What is the mean price?",
    answer="The mean price is 12.5 euros.",
    prompt=["12.5"],
    status="not_rag",
)
def pandas_query():
    frame = pd.DataFrame({"article": ["rope", "hook"], "price": [20.0, 5.0]})

    class PandasEngine(CustomQueryEngine):
        """The engine of LlamaIndex's experimental package, in short."""

        llm: object

        def custom_query(self, query_str):
            code = self.llm.predict(_PANDAS, head=str(frame.head()), query=query_str)
            value = frame.eval(code) if "mean" not in code else frame["price"].mean()
            return self.llm.predict(_SYNTHESIS, query=query_str, code=code, value=str(value))

    PandasEngine(llm=writer("df['price'].mean()", "The mean price is 12.5 euros.")).query(
        "What is the mean price?"
    )


_PANDAS = PromptTemplate("Head of df:\n{head}\nWrite an expression for: {query}")
_SYNTHESIS = PromptTemplate(
    "Query: {query}\nInstructions: {code}\nOutput: {value}\nWrite the response:"
)


@app(
    "a whole table in the prompt",
    question="Which article is cheapest?",
    answer="The hook, at 5 euros.",
    prompt=["rope", "20.0", "hook", "5.0"],
    status="not_rag",
)
def table_in_prompt():
    frame = pd.DataFrame({"article": ["rope", "hook"], "price": [20.0, 5.0]})

    class Desk(CustomQueryEngine):
        llm: object

        def custom_query(self, query_str):
            return self.llm.complete(f"{frame}\n{query_str}").text

    Desk(llm=talker("The hook, at 5 euros.")).query("Which article is cheapest?")


@app(
    "a JSON value asked by a path",
    question="What is the second post about?",
    answer="It is about glaciers.",
    prompt=["Glaciers in retreat"],
    status="not_rag",
)
def json_query():
    value = {"posts": [{"title": "Lakes"}, {"title": "Glaciers in retreat"}]}
    llm = writer("$.posts[1].title", "It is about glaciers.")
    JSONQueryEngine(
        json_value=value,
        json_schema={"type": "object"},
        llm=llm,
        output_processor=lambda path, given: {"title": given["posts"][1]["title"]},
    ).query("What is the second post about?")


# --- graphs ---------------------------------------------------------------------------------------


@app(
    "an index of triples",
    question="Whom did Ada marry?",
    answer="She got married to William King.",
    prompt=["married", "William King"],
)
def knowledge_graph():
    llm = writer(
        when(
            {
                "KEYWORDS:": "KEYWORDS: Ada",
                "knowledge triplets": "(Ada, married, William King)",
            },
            "She got married to William King.",
        )
    )
    made = KnowledgeGraphIndex.from_documents(
        [],
        storage_context=StorageContext.from_defaults(graph_store=SimpleGraphStore()),
        llm=llm,
        embed_model=WordEmbedding(),
    )
    made.upsert_triplet(("Ada", "married", "William King"))
    made.as_query_engine(llm=llm, include_text=False, response_mode="tree_summarize").query(
        "Whom did Ada marry?"
    )


def property_graph():
    store = SimplePropertyGraphStore()
    ada, william = EntityNode(name="Ada"), EntityNode(name="William King")
    store.upsert_nodes([ada, william])
    store.upsert_relations([Relation(label="MARRIED", source_id=ada.id, target_id=william.id)])
    return store


@app(
    "a property graph, entered by synonyms that a model found",
    question="Whom did Ada marry?",
    answer="She married William King. They had three children.",
    prompt=["MARRIED", "William King"],
    invented=["They had three children."],
)
def property_graph_index():
    store = property_graph()
    with default_model():
        made = PropertyGraphIndex.from_existing(
            property_graph_store=store, llm=writer("-"), embed_kg_nodes=False
        )
        retriever = LLMSynonymRetriever(
            store, include_text=False, llm=writer("Ada^Ada Lovelace^Countess")
        )
        made.as_query_engine(
            sub_retrievers=[retriever],
            llm=talker("She married William King. They had three children."),
        ).query("Whom did Ada marry?")


@app(
    "a retriever over a graph of triples",
    question="Where does Kim work?",
    answer="At the mint in town.",
    prompt=["works_at", "mint"],
)
def graph_rag():
    graph = SimpleGraphStore()
    graph.upsert_triplet("Kim", "works_at", "the mint")
    llm = writer("KEYWORDS: Kim", "SYNONYMS: Kim", "At the mint in town.")
    with default_model(llm):
        retriever = KnowledgeGraphRAGRetriever(
            storage_context=StorageContext.from_defaults(graph_store=graph),
            llm=llm,
            entity_extract_fn=lambda question: ["Kim"],
            synonym_expand_fn=lambda keyword: [keyword],
        )
        RetrieverQueryEngine.from_args(retriever, llm=llm).query("Where does Kim work?")


@app(
    "an agent whose tool returns triples",
    question="Who manages the mint?",
    answer="Kim's boss Lee manages it.",
    prompt=["Lee", "manages", "mint"],
)
async def triples_of_tool():
    def graph(entity: str) -> list:
        """Triples about an entity."""
        return [("Lee", "manages", "mint"), ("Kim", "works_at", "mint")]

    llm = talker(call("graph", entity="mint"), "Kim's boss Lee manages it.")
    await FunctionAgent(tools=[graph], llm=llm).run("Who manages the mint?", memory=memory())


@app(
    "triples and texts beside each other in one prompt",
    question="Who manages the mint?",
    answer="Lee, since the reform of 1990.",
    chunks=["The mint was reformed in 1990, when it got its manager."],
    prompt=["Lee manages mint"],
)
def triples_beside_texts():
    class Hybrid(CustomQueryEngine):
        llm: object

        def custom_query(self, query_str):
            graph = SimpleGraphStore()
            graph.upsert_triplet("Lee", "manages", "mint")
            triples = [f"Lee {' '.join(rest)}" for rest in graph.get("Lee")]
            nodes = Shelf("The mint was reformed in 1990, when it got its manager.").retrieve(
                query_str
            )
            prompt = f"Graph:\n{triples[0]}\n\nTexts:\n{nodes[0].text}\n\n{query_str}"
            return self.llm.complete(prompt).text

    Hybrid(llm=writer("Lee, since the reform of 1990.")).query("Who manages the mint?")
