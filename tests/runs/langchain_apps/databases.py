"""Applications that answer from rows and records of a database."""

import json
import sqlite3
from operator import itemgetter
from typing import Any, TypedDict

from harness import app
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from langchain_fakes import calling, chat, finding, joined
from langgraph.graph import START, StateGraph

SCHEMA = "CREATE TABLE staff (name TEXT, team TEXT, hired INTEGER)"


def database():
    made = sqlite3.connect(":memory:", check_same_thread=False)
    made.execute(SCHEMA)
    people = [("Ada", "compilers", 2011), ("Grace", "compilers", 2015), ("Edsger", "paths", 2019)]
    made.executemany("INSERT INTO staff VALUES (?, ?, ?)", people)
    return made


class Sql(TypedDict, total=False):
    question: str
    query: str
    result: str
    answer: str


def pipeline(*nodes, state=Sql):
    builder = StateGraph(state)
    builder.add_sequence(nodes)
    builder.add_edge(START, nodes[0].__name__)
    return builder.compile()


@app(
    "a count that a query gave",
    question="How many people work on compilers?",
    answer="There are 2 people on the compilers team.",
    prompt=["2"],
    absent=["SELECT COUNT(*) FROM staff WHERE team = 'compilers'"],
)
def count_of_rows(config):
    def write_query(state: Sql):
        prompt = ChatPromptTemplate.from_template("Tables:\n{schema}\nWrite SQL for: {question}")
        model = chat("SELECT COUNT(*) FROM staff WHERE team = 'compilers'")
        asked = {"schema": SCHEMA, "question": state["question"]}
        return {"query": (prompt | model | StrOutputParser()).invoke(asked)}

    def execute_query(state: Sql):
        return {"result": str(database().execute(state["query"]).fetchall())}

    def generate_answer(state: Sql):
        prompt = (
            "Given the following user question, corresponding SQL query, and SQL result, answer "
            f"the user question.\n\nQuestion: {state['question']}\nSQL Query: {state['query']}\n"
            f"SQL Result: {state['result']}"
        )
        return {"answer": chat("There are 2 people on the compilers team.").invoke(prompt).content}

    pipeline(write_query, execute_query, generate_answer).invoke(
        {"question": "How many people work on compilers?"}, config
    )


@app(
    "rows that an agent asked for with tools",
    question="Who was hired last, and when?",
    answer="Edsger was hired last, in 2019. He came from Rotterdam.",
    chunks=["[('Edsger', 2019)]"],
    prompt=["CREATE TABLE staff (name TEXT, team TEXT, hired INTEGER)"],
    absent=["SELECT name, hired FROM staff ORDER BY hired DESC LIMIT 1"],
    invented=["He came from Rotterdam."],
)
def agent_with_sql(config):
    made = database()

    @tool
    def sql_db_schema(table_names: str) -> str:
        """The schema of tables."""
        return SCHEMA

    @tool
    def sql_db_query(query: str) -> str:
        """Run a query."""
        return str(made.execute(query).fetchall())

    model = chat(
        calling("sql_db_schema", table_names="staff"),
        calling("sql_db_query", query="SELECT name, hired FROM staff ORDER BY hired DESC LIMIT 1"),
        "Edsger was hired last, in 2019. He came from Rotterdam.",
    )
    agent = create_agent(model, [sql_db_schema, sql_db_query], system_prompt="You query SQL.")
    agent.invoke({"messages": [HumanMessage("Who was hired last, and when?")]}, config)


@app(
    "a customer's record under a key of its own",
    question="When does my contract end?",
    answer="Your contract ends on 30 September 2026.",
    prompt=["2026-09-30", "Fiber 500", "Nora Eide"],
)
def record_under_a_key(config):
    class State(TypedDict, total=False):
        question: str
        customer_record: dict[str, Any]
        reply: str

    def load_customer(state: State):
        record = {"name": "Nora Eide", "tariff": "Fiber 500", "contract_end": "2026-09-30"}
        return {"customer_record": record}

    def reply(state: State):
        messages = [
            SystemMessage(f"Customer data: {json.dumps(state['customer_record'])}"),
            HumanMessage(state["question"]),
        ]
        return {"reply": chat("Your contract ends on 30 September 2026.").invoke(messages).content}

    pipeline(load_customer, reply, state=State).invoke(
        {"question": "When does my contract end?"}, config
    )


@app(
    "a patient's record with nested values, in German",
    question="Gegen welches Mittel ist die Patientin allergisch?",
    answer="Sie ist gegen Penicillin allergisch. Sie raucht nicht.",
    prompt=["Penicillin", "Bluthochdruck seit 2018"],
    invented=["Sie raucht nicht."],
)
async def nested_record(config):
    async def akte(eingabe):
        return {
            "stammdaten": {"name": "E. Vogt", "geboren": 1961},
            "allergien": ["Penicillin"],
            "diagnosen": [{"text": "Bluthochdruck seit 2018", "icd": "I10"}],
        }

    prompt = ChatPromptTemplate.from_messages(
        [("system", "Patientenakte:\n{akte}"), ("human", "{frage}")]
    )
    chain = (
        RunnablePassthrough.assign(akte=RunnableLambda(akte))
        | prompt
        | chat("Sie ist gegen Penicillin allergisch. Sie raucht nicht.")
    )
    asked = {"frage": "Gegen welches Mittel ist die Patientin allergisch?"}
    await chain.ainvoke(asked, config)


@app(
    "rows beside documents",
    question="May Ada carry over her leave?",
    answer="Yes: Ada has 4 days left and up to 5 days may be carried over.",
    chunks=["Up to five days of leave may be carried over into the next year."],
    prompt=["('Ada', 4)"],
)
def rows_beside_documents(config):
    policy = finding("Up to five days of leave may be carried over into the next year.")
    rows = RunnableLambda(lambda given: [("Ada", 4)])
    prompt = ChatPromptTemplate.from_template(
        "Policy:\n{policy}\n\nLeave accounts (name, days left): {rows}\n\n{question}"
    )
    chain = (
        {
            "policy": itemgetter("question") | policy | joined,
            "rows": rows,
            "question": itemgetter("question"),
        }
        | prompt
        | chat("Yes: Ada has 4 days left and up to 5 days may be carried over.")
        | StrOutputParser()
    )
    chain.invoke({"question": "May Ada carry over her leave?"}, config)


@app(
    "SQL and its result in one chain of assignments",
    question="Which team has the most people?",
    answer="The compilers team, with two people.",
    prompt=["compilers"],
    absent=["SELECT team, COUNT(*) c FROM staff GROUP BY team ORDER BY c DESC LIMIT 1"],
)
def assigned_sql(config):
    made = database()
    write = PromptTemplate.from_template("SQL for {question}:") | chat(
        "SELECT team, COUNT(*) c FROM staff GROUP BY team ORDER BY c DESC LIMIT 1"
    )
    answer = PromptTemplate.from_template(
        "Question: {question}\nSQL Query: {query}\nSQL Result: {result}\nAnswer: "
    )
    chain = (
        RunnablePassthrough.assign(query=write | StrOutputParser())
        .assign(result=lambda given: made.execute(given["query"]).fetchall())
        .assign(answer=answer | chat("The compilers team, with two people.") | StrOutputParser())
        .pick("answer")
    )
    chain.invoke({"question": "Which team has the most people?"}, config)


@app(
    "graph triples of a Cypher query",
    question="Who acted with Keanu Reeves in Speed?",
    answer="Sandra Bullock acted with him.",
    prompt=["Sandra Bullock", "Dennis Hopper"],
    absent=["MATCH (a:Actor)-[:IN]->(m:Movie {title: 'Speed'}) RETURN a.name"],
)
def cypher(config):
    def ask_graph(given):
        return [{"a.name": "Sandra Bullock"}, {"a.name": "Dennis Hopper"}]

    write = ChatPromptTemplate.from_template("Cypher for: {question}") | chat(
        "MATCH (a:Actor)-[:IN]->(m:Movie {title: 'Speed'}) RETURN a.name"
    )
    answer = ChatPromptTemplate.from_template("Information:\n{rows}\n\nQuestion: {question}")
    chain = (
        RunnablePassthrough.assign(query=write | StrOutputParser())
        | RunnablePassthrough.assign(rows=RunnableLambda(ask_graph))
        | answer
        | chat("Sandra Bullock acted with him.")
        | StrOutputParser()
    )
    chain.invoke({"question": "Who acted with Keanu Reeves in Speed?"}, config)


@app(
    "a query that failed and was mended",
    question="How many people were hired after 2014?",
    answer="2 people were hired after 2014.",
    chunks=["[(2,)]"],
    allowed=["Error: no such column: year"],
)
def mended_query(config):
    made = database()

    @tool
    def run_sql(sql: str) -> str:
        """Run SQL on the staff table."""
        try:
            return str(made.execute(sql).fetchall())
        except sqlite3.Error as error:
            return f"Error: {error}"

    model = chat(
        calling("run_sql", sql="SELECT COUNT(*) FROM staff WHERE year > 2014"),
        calling("run_sql", sql="SELECT COUNT(*) FROM staff WHERE hired > 2014"),
        "2 people were hired after 2014.",
    )
    question = {"messages": [("user", "How many people were hired after 2014?")]}
    create_agent(model, [run_sql]).invoke(question, config)
