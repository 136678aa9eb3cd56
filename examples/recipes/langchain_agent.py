"""Scores the answer of a LangChain agent against what its tools returned.

The model is scripted: it calls the search tool once and then answers. The context of the answer is
what the tool said in this turn.
"""

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from langchain_ragaliq import attach, detach
from ragaliq import Evaluation


class ScriptedModel(GenericFakeChatModel):
    """Says what it was told to, and lets itself be given tools."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> "ScriptedModel":  # noqa: ARG002
        return self


@tool
def search(query: str) -> str:
    """Search the handbook."""
    return f"About {query}: the Aurora lamp weighs 310 grams and runs for twelve hours."


def show(result: Evaluation) -> None:
    faithfulness = result.results["faithfulness"]
    print("score", faithfulness.score)
    for claim in faithfulness.claims:
        print(claim.verdict, "-", claim.claim)


model = ScriptedModel(
    messages=iter(
        [
            AIMessage("", tool_calls=[{"name": "search", "args": {"query": "lamp"}, "id": "1"}]),
            AIMessage("The Aurora lamp weighs 310 grams. The Aurora lamp costs 49 dollars."),
        ]
    )
)
agent = create_agent(model, [search])

handler = attach(judge="local", on_result=show)  # every chain and agent of this process
agent.invoke({"messages": [("user", "How heavy is the Aurora lamp?")]})
handler.monitor.flush(timeout=30)
print(handler.monitor.stats().outcomes)
detach()
