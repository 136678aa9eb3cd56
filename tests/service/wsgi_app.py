"""A WSGI service: no event loop, no lifespan; the end of the process is all the end there is."""

import os
from urllib.parse import parse_qs

from langchain_ragaliq import attach
from library import build_chain
from ragaliq import Monitor

monitor = Monitor(sinks=[os.environ["SERVICE_STORE"]])
attach(monitor=monitor)
chain = build_chain(0.0)


def app(environ, start_response):
    question = parse_qs(environ["QUERY_STRING"])["question"][0]
    start_response("200 OK", [("content-type", "text/plain")])
    return [word.encode() for word in chain.stream(question)]
