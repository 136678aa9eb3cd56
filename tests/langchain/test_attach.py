"""attach() scores every chain of the process once; a monitor counts a run once for all handlers."""

import asyncio
import threading
import uuid

import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from rag_parts import (
    ANSWER,
    QUESTION,
    REFUNDS,
    Completing,
    FixedRetriever,
    calling,
    model,
    rag_chain,
)

from langchain_ragaliq import RagaliqCallbackHandler, attach, detach
from ragaliq import ConfigurationError
from ragaliq.testing import ScriptedJudge

EXPECTED = (QUESTION, REFUNDS, ANSWER)


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


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_that_ends_while_the_handler_is_detached_is_counted_as_ever(watch, fails):
    def close_and_detach(run):
        is_first = close(run)
        detach()  # as another thread may do now
        return is_first

    registry = watch.handler._registry
    close, registry.close = registry.close, close_and_detach
    attach(watch.handler)
    if fails:
        with pytest.raises(ZeroDivisionError):
            rag_chain(parser=lambda said: 1 / 0).invoke(QUESTION)
        assert watch.incomplete == {"errored": 1}
    else:
        rag_chain().invoke(QUESTION)
        assert watch.only == EXPECTED


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


@pytest.mark.parametrize("given", ["local", object()])
def test_what_is_no_handler_and_no_monitor_is_refused(given):
    with pytest.raises(ConfigurationError, match="a judge and a monitor are given by name"):
        attach(given)
    with pytest.raises(ConfigurationError, match="monitor must be a"):
        attach(monitor=given)
    with pytest.raises(ConfigurationError, match="monitor must be a"):
        RagaliqCallbackHandler(given)


@pytest.fixture
def another(watch):
    """A handler of the same monitor, which knows better what the question is."""
    handler = RagaliqCallbackHandler(
        watch.monitor, extract=lambda inputs, outputs: {"question": "Refunds?"}
    )
    yield handler
    assert (handler.open_runs, handler.errors) == (0, 0)


def test_the_handler_given_to_a_chain_goes_before_the_attached_one(watch, another, invoke, stream):
    attach(watch.handler)
    invoke(rag_chain(), QUESTION, {"callbacks": [another]})
    stream(rag_chain().with_config(callbacks=[another]), QUESTION)
    assert watch.triples == [("Refunds?", REFUNDS, ANSWER)] * 2
    assert watch.stats.started == 2


def test_the_first_of_two_that_were_given_counts(watch, another, invoke):
    invoke(rag_chain(), QUESTION, {"callbacks": [watch.handler, another]})
    assert watch.only == EXPECTED


def test_what_runs_inside_is_no_run_of_the_others_either(watch, another, invoke):
    @tool
    def ask(query: str) -> str:
        """Answers questions."""
        return rag_chain().invoke(query)

    agent = create_agent(model(calling("ask", query="refunds"), ANSWER), [ask])
    callbacks = {"callbacks": [watch.handler, another]}
    invoke(agent, {"messages": [("user", QUESTION)]}, callbacks)
    assert watch.only == EXPECTED


def test_detaching_leaves_the_run_to_the_handler_of_its_chain(watch, another):
    attach(another)
    answer = rag_chain().stream(QUESTION, watch.config)
    next(answer)
    detach()
    assert list(answer)
    assert watch.only == EXPECTED


def test_an_id_that_is_used_again_is_another_run(watch, another, invoke):
    run_id = uuid.uuid4()
    for _ in range(2):
        config = {"callbacks": [watch.handler, another], "run_id": run_id}
        invoke(rag_chain(FixedRetriever()), QUESTION, config)
    assert watch.triples == [EXPECTED] * 2
    assert watch.stats.started == 2


CHAIN = {"run_name": "support-desk", "tags": ["beta"], "metadata": {"tenant": "acme"}}


@pytest.mark.parametrize(
    "options",
    [
        {"only": "support-*"},
        {"only": "beta"},
        {"only": {"tenant": "acme"}},
        {"only": ["nothing", {"tenant": "acme"}]},
        {"ignore": "chat"},
        {"ignore": {"tenant": "acme", "plan": "free"}},
    ],
)
def test_only_chosen_runs_are_followed(new_watch, options):
    attach((watch := new_watch(handler=options)).handler)
    rag_chain().with_config(CHAIN).invoke(QUESTION)
    rag_chain().with_config(run_name="chat").invoke("Hello?")
    queries = [triple.question for triple in watch.triples]
    is_every = options == {"ignore": {"tenant": "acme", "plan": "free"}}
    assert queries == ([QUESTION, "Hello?"] if is_every else [QUESTION])


def test_a_chosen_chain_is_followed_inside_another_and_nothing_inside_an_ignored_one(new_watch):
    inner = rag_chain().with_config(CHAIN)
    outer = RunnableLambda(inner.invoke)
    for options, started in (({"only": "beta"}, 1), ({"ignore": "outer"}, 0)):
        attach((watch := new_watch(handler=options)).handler)
        outer.invoke(QUESTION, {"run_name": "outer"})
        assert watch.stats.started == started
    assert watch.stats.outcomes.get("evaluated", 0) == 0


def test_a_lone_call_that_is_not_chosen_is_not_counted(new_watch):
    attach((watch := new_watch(handler={"only": "support-*"})).handler)
    model("Hello.").invoke("Say hello.")
    assert watch.stats.started == 0


@pytest.mark.parametrize("options", [{"only": []}, {"only": 3}, {"ignore": [None]}, {"only": ""}])
def test_a_choice_of_the_wrong_kind_is_refused(options):
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        RagaliqCallbackHandler(judge=ScriptedJudge(), **options)
