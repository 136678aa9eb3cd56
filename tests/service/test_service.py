"""A service under real servers, and clients that hang up: each whole answer is scored, no other."""

import asyncio
import signal

import pytest
from clients import Plan, ask_all, crowd, expected, question

pytestmark = pytest.mark.slow

WORKERS = {"uvicorn": 1, "gunicorn": 2}  # gunicorn with preload: forked once all is built


def check(server, asked, workers):
    """What was read is right, and was evaluated as it was read; the counts add up."""
    assert asked.answers == {asked_for: expected(asked_for)[1] for asked_for in asked.answers}
    evaluated = server.triples()
    assert evaluated == {asked_for: expected(asked_for) for asked_for in evaluated}
    assert set(evaluated) >= set(asked.answers)
    assert len(server.counts()) == workers
    assert server.total("started") == len(asked.answers) + len(asked.left)
    outcomes = server.total("outcomes")
    assert outcomes.pop("evaluated") == len(evaluated)
    cut = server.total("started") - len(evaluated)
    assert outcomes.pop("incomplete_run", 0) + server.total("pending") == cut
    assert not outcomes
    assert "Traceback" not in server.log


@pytest.mark.parametrize("program", WORKERS)
async def test_of_a_hundred_clients_every_whole_answer_is_scored_and_no_cut_one(serve, program):
    # Slow enough that nobody who means to hang up can still be given the whole answer.
    server = serve(program, SERVICE_SECONDS_PER_WORD="0.1")
    asked = await ask_all(f"{server.url}/ask", crowd(100, seed=7))
    assert len(asked.left) > 30
    assert len(asked.answers) > 30
    # At once: what is not evaluated yet has the time the server takes to end.
    server.stop()
    check(server, asked, WORKERS[program])
    assert set(server.triples()) == set(asked.answers)
    assert server.total("incomplete") == {"cancelled": len(asked.left)}


async def test_of_answers_that_threads_stream_no_cut_one_is_scored_either(serve):
    # Closing such a stream has LangChain read the model's to its end while nothing else goes on.
    # So a client may well be given the rest of an answer that it does not wait for.
    server = serve("uvicorn", app="threads_app:app", SERVICE_SECONDS_PER_WORD="0.01")
    asked = await ask_all(f"{server.url}/ask-in-threads", crowd(16, seed=7))
    server.stop()
    check(server, asked, 1)
    assert "truncated" in server.total("incomplete")


@pytest.mark.parametrize("program", WORKERS)
async def test_a_signal_to_end_loses_no_answer_that_is_being_read(serve, program):
    server = serve(program)
    plans = [Plan(question(number)) for number in range(16)]
    barrier = asyncio.Barrier(len(plans))

    async def reading():
        if await barrier.wait() == 0:
            server.send(signal.SIGTERM)

    asked = await ask_all(f"{server.url}/ask", plans, reading=reading)
    assert len(asked.answers) == len(plans)
    server.wait()
    check(server, asked, WORKERS[program])


async def test_workers_that_a_server_starts_anew_lose_nothing_either(serve):
    server = serve("uvicorn with workers")
    asked = await ask_all(f"{server.url}/ask", [Plan(question(number)) for number in range(8)])
    server.stop()
    check(server, asked, 2)


async def test_a_service_without_an_event_loop_evaluates_what_it_accepted_when_it_ends(serve):
    server = serve("gunicorn with threads", app="wsgi_app:app")
    asked = await ask_all(server.url, [Plan(question(number)) for number in range(16)])
    assert len(asked.answers) == 16
    server.stop()
    assert server.triples() == {asked_for: expected(asked_for) for asked_for in asked.answers}


@pytest.mark.parametrize("app", ["greenlets_app", "django_app"])
async def test_workers_of_greenlets_serve_every_request_and_evaluate_nothing(serve, app):
    # gunicorn has no worker for eventlet any more.
    pytest.importorskip("gevent")
    if app == "django_app":
        pytest.importorskip("django")
    server = serve("gunicorn with gevent", app=f"{app}:app")
    # One after the other: greenlets of one thread would see each other's `asyncio.run`.
    for number in range(8):
        asked = await ask_all(server.url, [Plan(question(number))])
        assert len(asked.answers) == 1, server.log
    server.stop()
    assert "gevent has patched threading" in server.log
    assert "Traceback" not in server.log
    assert not server.has_store
