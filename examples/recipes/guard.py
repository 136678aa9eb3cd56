"""Keeps an answer below the threshold from going out, and says what is wrong with it.

The chain's first answer is made up, its second keeps to the context: `retry` shows it the claims
that failed. A judge that fails lets answers pass, unless `on_failure` says otherwise.
"""

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from langchain_ragaliq import RagaliqGuard
from ragaliq import Guard, RAGTestCase

CONTEXT = "Refunds take five days."


def answer(given: dict) -> dict:
    said = CONTEXT if given["feedback"] else "Refunds take nine days."
    return {**given, "context": [Document(CONTEXT)], "answer": said}


guarded = RagaliqGuard(
    RunnableLambda(answer), judge="local", action="retry", fallback="I do not know.", timeout=30
)
print("chain:", guarded.invoke({"question": "How long do refunds take?"})["answer"])

# Without a framework: check a case, and decide yourself.
guard = Guard(judge="local", fallback="I do not know.", timeout=30)
checked = guard.check(
    RAGTestCase(
        query="How long do refunds take?",
        context=[CONTEXT],
        response="Refunds take five days. Shipping costs 90 dollars.",
    )
)
print("check:", checked.decision, [claim.claim for claim in checked.failed_claims])
guard.monitor.close()
