"""The example with a second route, which streams from the chain's synchronous side."""

from fastapi.responses import StreamingResponse

from app import app, chain, handler

__all__ = ["app"]


@app.get("/ask-in-threads")
def ask_in_threads(question: str) -> StreamingResponse:
    words = chain.stream(question, config={"callbacks": [handler]})
    return StreamingResponse(words, media_type="text/plain")
