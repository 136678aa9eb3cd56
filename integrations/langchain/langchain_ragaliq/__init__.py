"""Score a LangChain application's live answers with ragaliq.

    handler = RagaliqCallbackHandler(judge="local", sample_rate=0.1)
    chain.invoke(question, config={"callbacks": [handler]})

or, for every chain of the process, `attach(judge="local", sample_rate=0.1)`.
"""

from langchain_ragaliq.attach import attach, detach
from langchain_ragaliq.handler import RagaliqCallbackHandler

__all__ = ["RagaliqCallbackHandler", "attach", "detach"]
