"""A WSGI service for workers of greenlets, which asks in each request what Django's ORM asks."""

import asyncio

from wsgi_app import app as answering


async def _own():
    return "a loop of the application's own"


def app(environ, start_response):
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        assert asyncio.run(_own()) == "a loop of the application's own"
        return answering(environ, start_response)
    raise RuntimeError("an event loop counts as running in this request")
