"""Scores the answers of a LlamaIndex query engine while it runs.

LlamaIndex's MockLLM repeats its prompt, so the answer is not a good one; in your application the
engine has a model, and only `attach` is new.
"""

from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.llms import MockLLM

from llama_index.evaluation.ragaliq import attach, detach
from ragaliq import Evaluation


def show(result: Evaluation) -> None:
    print("question:", result.case.query)
    print("context:", result.case.context_texts)
    print("faithfulness:", result.results["faithfulness"].status)


index = VectorStoreIndex.from_documents(
    [Document(text="Refunds are paid within five working days.")],
    embed_model=MockEmbedding(embed_dim=8),
)
handler = attach(judge="local", on_result=show)  # every query and chat engine of this process
index.as_query_engine(llm=MockLLM()).query("How long do refunds take?")
handler.monitor.flush(timeout=30)
print(handler.monitor.stats().outcomes)
detach()
