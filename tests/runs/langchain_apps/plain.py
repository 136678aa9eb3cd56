"""Plain functions without a chain around search and model, and applications with no case."""

from harness import app
from langchain_fakes import chat, finding, joined

RULES = "Quiet hours in the dormitory begin at ten in the evening."
PETS = "Pets are allowed after written consent of the house manager."


@app(
    "a function that searches, then asks",
    question="When do quiet hours begin?",
    answer="Quiet hours begin at ten in the evening.",
    chunks=[RULES, PETS],
    attached=True,
)
def plain(config):
    retriever, model = finding(RULES, PETS), chat("Quiet hours begin at ten in the evening.")

    def ask(question):
        docs = retriever.invoke(question)
        prompt = f"Answer using the context.\n\nContext:\n{joined(docs)}\n\nQuestion: {question}"
        return model.invoke(prompt).content

    ask("When do quiet hours begin?")


@app(
    "a lone call of a model",
    question="Write a limerick about printers.",
    status="not_rag",
    attached=True,
)
def lone(config):
    chat("There once was a printer in Ghent.").invoke("Write a limerick about printers.")
