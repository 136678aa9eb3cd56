"""Many chains at the same time, in threads and in an event loop; results that are awaited."""

import asyncio
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from rag_parts import QUESTION, ScriptedChatModel, model, rag_chain

CHAINS = 60


class OwnDocuments(BaseRetriever):
    """Finds three documents that name the question, after a moment."""

    def _get_relevant_documents(self, query, *, run_manager):
        time.sleep(random.uniform(0, 0.01))
        return self.about(query)

    async def _aget_relevant_documents(self, query, *, run_manager):
        await asyncio.sleep(random.uniform(0, 0.01))
        return self.about(query)

    def about(self, query):
        return [Document(page_content=text) for text in contexts_of(query)]


class OwnAnswer(ScriptedChatModel):
    def _reply(self, messages):
        return AIMessage(answer_to(messages[-1].text))


def contexts_of(question):
    return [f"{question} Part {n}." for n in range(3)]


def answer_to(question):
    return f"The answer to {question}"


def test_every_question_gets_its_own_documents_and_its_own_answer(new_watch):
    watch = new_watch(max_queue=2 * CHAINS)
    chain = rag_chain(OwnDocuments(), OwnAnswer(delay=0.002))
    in_threads = [f"Thread question {n}?" for n in range(CHAINS)]
    in_loop = [f"Loop question {n}?" for n in range(CHAINS)]

    def ask_in_threads():
        with ThreadPoolExecutor(32) as pool:
            answers = list(pool.map(lambda q: chain.invoke(q, watch.config), in_threads))
        assert answers == [answer_to(question) for question in in_threads]

    async def ask_in_loop():
        return await asyncio.gather(*(chain.ainvoke(q, watch.config) for q in in_loop))

    thread = threading.Thread(target=ask_in_threads)
    thread.start()
    answers = asyncio.run(ask_in_loop())
    thread.join(60)
    assert answers == [answer_to(question) for question in in_loop]

    questions = sorted(in_threads + in_loop)
    assert sorted(watch.triples) == [(q, contexts_of(q), answer_to(q)) for q in questions]
    assert watch.stats.outcomes == {"evaluated": 2 * CHAINS}


def test_streams_read_by_turns_keep_apart(watch):
    chain = rag_chain(OwnDocuments(), OwnAnswer())
    questions = [f"Question {n}?" for n in range(10)]
    streams = [chain.stream(question, watch.config) for question in questions]
    while streams:
        streams = [stream for stream in streams if next(stream, None) is not None]
    assert sorted(watch.triples) == [(q, contexts_of(q), answer_to(q)) for q in questions]


def test_of_an_asynchronous_chain_it_can_be_awaited(new_watch):
    watch = new_watch(mode="inline")

    async def request(number):
        chain = rag_chain(llm=model(f"Answer {number} is this."))
        run_id = uuid4()
        answer = await chain.ainvoke(QUESTION, {**watch.config, "run_id": run_id})
        latest = await watch.monitor.result()
        assert latest is await watch.monitor.result(str(run_id))
        return answer == latest.case.response

    async def requests():
        return await asyncio.gather(*map(request, range(10)))

    assert asyncio.run(requests()) == [True] * 10
