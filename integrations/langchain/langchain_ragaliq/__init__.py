"""Score a LangChain application's live answers with ragaliq.

    handler = RagaliqCallbackHandler(judge="local", sample_rate=0.1)
    chain.invoke(question, config={"callbacks": [handler]})

or, for every chain of the process, `attach(judge="local", sample_rate=0.1)`.

`RagaliqGuard` and, for agents, `RagaliqGuardMiddleware` check answers before they go out.
"""

from typing import TYPE_CHECKING, Any

from langchain_ragaliq.attach import attach, detach
from langchain_ragaliq.guard import RagaliqGuard
from langchain_ragaliq.handler import RagaliqCallbackHandler

if TYPE_CHECKING:
    from langchain_ragaliq.middleware import RagaliqGuardMiddleware as RagaliqGuardMiddleware

# Without the middleware, which needs `langchain` in addition to `langchain-core`.
__all__ = ["RagaliqCallbackHandler", "RagaliqGuard", "attach", "detach"]


def __getattr__(name: str) -> Any:
    if name == "RagaliqGuardMiddleware":
        from langchain_ragaliq.middleware import RagaliqGuardMiddleware

        return RagaliqGuardMiddleware
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
