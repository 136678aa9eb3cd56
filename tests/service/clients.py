"""Clients that ask at the same time, some of whom hang up in the middle of the answer."""

import asyncio
import random
from dataclasses import dataclass, field

import httpx

from library import NOTES, NoteRetriever

LONGEST_READ = 4
"""Words after which a client that hangs up has done so; every answer is several times as long."""


@dataclass(frozen=True)
class Plan:
    """What a client does: when it asks what, and after how many words it hangs up, if it does."""

    question: str
    delay: float = 0.0
    words: int | None = None


@dataclass
class Asked:
    """What the clients got: whole answers by question, and the questions they left."""

    answers: dict = field(default_factory=dict)
    left: list = field(default_factory=list)


def question(number):
    return f"{NOTES[number % len(NOTES)]['question']} I am reader {number}."


def expected(asked):
    """The contexts and the answer that belong to a question."""
    note = next(note for note in NOTES if note["question"] in asked)
    contexts = [document.page_content for document in NoteRetriever().invoke(asked)]
    assert note["text"] in contexts
    return contexts, note["answer"]


def crowd(size, *, seed):
    """Plans of clients about half of whom hang up, at moments that only the seed decides."""
    chance = random.Random(seed)
    return [
        Plan(
            question(number),
            delay=chance.random() * 0.5,
            words=chance.randint(1, LONGEST_READ) if chance.random() < 0.5 else None,
        )
        for number in range(size)
    ]


async def ask_all(url, plans, *, reading=None):
    """Have every client carry out its plan; `reading` is awaited by each with its first word."""
    asked = Asked()
    limits = httpx.Limits(max_connections=None)
    async with (
        httpx.AsyncClient(limits=limits, timeout=60.0) as client,
        asyncio.TaskGroup() as everybody,
    ):
        for plan in plans:
            everybody.create_task(_ask(client, url, plan, asked, reading))
    return asked


async def _ask(client, url, plan, asked, reading):
    await asyncio.sleep(plan.delay)
    async with client.stream("GET", url, params={"question": plan.question}) as reply:
        assert reply.status_code == 200
        received = ""
        async for text in reply.aiter_text():
            if reading is not None and not received:
                await reading()
            received += text
            if plan.words is not None and len(received.split()) >= plan.words:
                asked.left.append(plan.question)
                return
    asked.answers[plan.question] = received
