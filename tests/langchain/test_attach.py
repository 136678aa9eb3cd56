"""attach() scores every chain of the process once, detach() ends it."""

import asyncio
import threading

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import LLM
from langchain_core.prompts import PromptTemplate
from rag_parts import ANSWER, QUESTION, REFUNDS, rag_chain

from langchain_ragaliq import RagaliqCallbackHandler, attach, detach
from ragaliq import ConfigurationError
from ragaliq.testing import ScriptedJudge

EXPECTED = (QUESTION, REFUNDS, ANSWER)


class Completing(LLM):
    @property
    def _llm_type(self):
        return "completing"

    def _call(self, prompt, stop=None, run_manager=None, **kwargs):
        return ANSWER


class Listening(BaseCallbackHandler):
    """Another tool's handler, not inline."""

    def __init__(self):
        self.prompts = []

    def on_llm_start(self, serialized, prompts, **kwargs):
        self.prompts += prompts


def in_plain_thread(chain):
    thread = threading.Thread(target=chain.invoke, args=[QUESTION])
    thread.start()
    thread.join(30)


WAYS = {
    "invoke": lambda chain: chain.invoke(QUESTION),
    "ainvoke": lambda chain: asyncio.run(chain.ainvoke(QUESTION)),
    "stream": lambda chain: list(chain.stream(QUESTION)),
    "thread": in_plain_thread,
}


@pytest.mark.parametrize("way", WAYS)
def test_attached_even_twice_every_chain_is_scored_once(watch, way):
    for _ in range(2):
        assert attach(watch.handler) is watch.handler
    WAYS[way](rag_chain())
    assert watch.only == EXPECTED


def test_the_same_handler_attached_and_given_counts_once(watch, invoke, stream):
    attach(watch.handler)
    invoke(rag_chain(), QUESTION, watch.config)
    stream(rag_chain().with_config(watch.config), QUESTION, watch.config)
    assert watch.triples == [EXPECTED] * 2
    assert watch.stats.started == 2


def test_attaching_another_handler_replaces_the_first_and_says_so(new_watch, invoke, caplog):
    first, second = new_watch(), new_watch()
    attach(first.handler)
    attach(first.handler)
    assert not caplog.messages
    attach(second.handler)
    assert caplog.messages == ["attach: this handler replaces the one that was attached before"]
    invoke(rag_chain(), QUESTION)
    assert first.stats.started == 0
    assert second.only == EXPECTED


def test_detached_nothing_is_scored_but_what_is_given_a_handler(watch, invoke):
    detach()
    attach(watch.handler)
    detach()
    detach()
    invoke(rag_chain(), QUESTION)
    assert watch.stats.started == 0
    invoke(rag_chain(), QUESTION, watch.config)
    attach(watch.handler)
    invoke(rag_chain(), QUESTION)
    assert watch.triples == [EXPECTED] * 2


@pytest.mark.parametrize("replaced", [False, True])
def test_a_run_in_progress_at_the_end_of_attachment_is_counted(new_watch, replaced):
    watch, other = new_watch(), new_watch()
    attach(watch.handler)
    stream = rag_chain().stream(QUESTION)
    next(stream)
    attach(other.handler) if replaced else detach()
    assert "".join(stream)
    assert watch.incomplete == {"detached": 1}
    assert other.stats.started == 0


def test_attach_builds_a_handler_from_options(invoke):
    results = []
    handler = attach(judge=ScriptedJudge(), pipeline="all", on_result=results.append)
    invoke(rag_chain(), QUESTION)
    detach()
    assert handler.monitor.close(10)
    assert [result.pipeline for result in results] == ["all"]


def test_wrong_options_leave_what_was_attached(watch, invoke):
    attach(watch.handler)
    with pytest.raises(ConfigurationError):
        attach(judge="local", sample_rate=7.0)
    invoke(rag_chain(), QUESTION)
    assert watch.only == EXPECTED


@pytest.mark.parametrize("attached", [True, False])
def test_beside_a_handler_that_is_not_inline_completion_models_need_the_option(watch, attached):
    """LangChain withholds `on_llm_start` from handlers of its thread pool if one is inline."""
    handler = RagaliqCallbackHandler(watch.monitor, run_inline=False)
    listening = Listening()
    callbacks = [listening] if attached else [listening, handler]
    if attached:
        attach(handler)
    chain = PromptTemplate.from_template("{question}") | Completing()
    asyncio.run(chain.ainvoke(QUESTION, {"callbacks": callbacks}))
    assert listening.prompts == [QUESTION]
    assert watch.only == (QUESTION, [], ANSWER)


def test_not_inline_every_shape_is_still_found(new_watch, invoke, stream):
    watch = new_watch(handler={"run_inline": False})
    invoke(rag_chain(), QUESTION, watch.config)
    stream(rag_chain(), QUESTION, watch.config)
    assert watch.triples == [EXPECTED] * 2


@pytest.mark.parametrize("given", ["local", object()])
def test_what_is_no_handler_and_no_monitor_is_refused(given):
    with pytest.raises(ConfigurationError, match="a judge and a monitor are given by name"):
        attach(given)
    with pytest.raises(ConfigurationError, match="monitor must be a"):
        attach(monitor=given)
    with pytest.raises(ConfigurationError, match="monitor must be a"):
        RagaliqCallbackHandler(given)
