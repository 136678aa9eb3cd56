"""The lines of the README's first block around an application of each style give its verdicts."""

import os
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.search(
    r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
)[1]
ATTACH, APPLICATION = BLOCK.split("# Your application, unchanged.")
LAST = [line for line in APPLICATION.splitlines() if line][-1]

NOTES = ["The lamp weighs 310 grams.", "Refunds take five days."]
ANSWER = "The lamp weighs 410 grams. Refunds take five days."
LANGCHAIN = """
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.vectorstores import InMemoryVectorStore

store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
store.add_texts(NOTES)
retriever, model = store.as_retriever(), FakeListChatModel(responses=[ANSWER])
"""

STYLES = {
    "dict chain": f"""{LANGCHAIN}
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough

prompt = ChatPromptTemplate.from_template("Answer from {{context}}: {{question}}")
chain = {{"context": retriever, "question": RunnablePassthrough()}} | prompt | model
chain.invoke("How heavy is the lamp?")
""",
    "graph": f"""{LANGCHAIN}
from typing import TypedDict
from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    question: str
    notes: list[str]
    reply: str


def find(state):
    return {{"notes": NOTES}}


def reply(state):
    prompt = "Notes: " + " ".join(state["notes"]) + " Question: " + state["question"]
    return {{"reply": model.invoke(prompt).content}}


graph = StateGraph(State)
graph.add_node("find", find)
graph.add_node("reply_node", reply)
graph.add_edge(START, "find")
graph.add_edge("find", "reply_node")
graph.add_edge("reply_node", END)
graph.compile().invoke({{"question": "How heavy is the lamp?"}})
""",
    "function": f"""{LANGCHAIN}
@handler.trace
def answer(question):
    notes = " ".join(document.page_content for document in retriever.invoke(question))
    return model.invoke(f"Notes: {{notes}} Question: {{question}}").content


answer("How heavy is the lamp?")
""",
    "function with its own search": """
@handler.trace
def answer(question):
    handler.monitor.add_context(*NOTES)
    return ANSWER


answer("How heavy is the lamp?")
""",
    "LlamaIndex engine": """
from llama_index.core import Document, SummaryIndex
from llama_index.core.llms import CompletionResponse, MockLLM


class Model(MockLLM):
    def complete(self, prompt, formatted=False, **options):
        return CompletionResponse(text=ANSWER)


documents = [Document(text=note) for note in NOTES]
engine = SummaryIndex.from_documents(documents).as_query_engine(llm=Model())
engine.query("How heavy is the lamp?")
""",
}


@pytest.mark.parametrize("style", STYLES)
def test_an_application_gets_its_verdicts_by_the_lines_of_the_readme(style, tmp_path, warm_python):
    attach = ATTACH
    if style.startswith("LlamaIndex"):
        attach = re.sub(
            r"from \S+ import attach  # LlamaIndex: (\S+)", r"from \1 import attach", ATTACH
        )
        assert attach != ATTACH
    # Its documents are a part of the stand-in, and perhaps of another framework.
    attach = attach.replace("from langchain_core.documents import Document\n", "")
    attach = attach.replace("from langchain_core.runnables import RunnableLambda\n", "")
    script = tmp_path / "application.py"
    script.write_text(f"{attach}\nNOTES, ANSWER = {NOTES}, {ANSWER!r}\n{STYLES[style]}\n{LAST}\n")
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    done = warm_python.run(script, cwd=tmp_path, env=env)
    assert done.stdout.splitlines() == [
        "CONTRADICTED    The lamp weighs 410 grams.",
        "SUPPORTED       Refunds take five days.",
    ], done.stderr
