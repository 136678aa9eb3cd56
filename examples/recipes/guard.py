"""Keeps an answer that the context does not support from going out, and says what is wrong with it.

The chain's answer is made up, so that the fallback goes out in its place. A judge that fails lets
answers pass, unless `on_failure="block"`.
"""

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from langchain_ragaliq import RagaliqGuard
from ragaliq import Guard, RAGTestCase

CONTEXT = "Refunds take five days."


def answer(given: dict) -> dict:
    return {**given, "context": [Document(CONTEXT)], "answer": "Refunds take nine days."}


guarded = RagaliqGuard(RunnableLambda(answer), judge="local", fallback="I do not know.", timeout=30)
print("chain:", guarded.invoke({"question": "How long do refunds take?"})["answer"])

# In a node of a graph, a step of a workflow, or without a framework: check a case.
guard = Guard(judge="local", timeout=30)
checked = guard.check(
    RAGTestCase(
        query="How long do refunds take?",
        context=[CONTEXT],
        response="Refunds take five days. Shipping costs 90 dollars.",
    )
)
print("check:", checked.decision, [claim.claim for claim in checked.failed_claims])
guard.monitor.close()
