"""LlamaIndex's own questions to a model, to index or to evaluate, are no runs in its spans."""

import pytest
from opentelemetry.sdk.trace import TracerProvider
from spans import ANSWER, Spans

from ragaliq import Monitor
from ragaliq.testing import ScriptedJudge
from ragaliq.traces import RagaliqSpanProcessor
from ragaliq.traces.llama_index import OWN_PROMPTS, SCOPE

QA = "Context information is below.\nRefunds take five days.\nQuery: {question}\nAnswer: "


def scored(question, prompt):
    """Questions of the runs in the spans of an engine that shows its model this prompt."""
    results, provider = [], TracerProvider()
    monitor = Monitor(judge=ScriptedJudge(), on_result=results.append)
    processor = RagaliqSpanProcessor(monitor)
    provider.add_span_processor(processor)
    app = Spans(provider, scope=SCOPE)
    shown = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": prompt,
        "llm.output_messages.0.message.content": ANSWER,
    }
    with app.span("RetrieverQueryEngine.query", kind="CHAIN", asked=question) as engine:
        app.retrieve()
        with app.span("MockLLM.chat", kind="LLM", **shown):
            pass
        app.say(engine, output=ANSWER)
    processor.force_flush()
    assert monitor.close(20)
    assert monitor.stats().started == len(results)
    return [result.case.query for result in results]


@pytest.mark.parametrize("own", OWN_PROMPTS)
def test_a_prompt_or_query_that_begins_as_llama_index_own_is_no_run(own):
    assert scored("Refunds?", f"\n{own} ... YES or NO") == []
    assert scored(own, QA.format(question=own)) == []


@pytest.mark.parametrize("own", OWN_PROMPTS)
def test_a_question_that_only_quotes_such_a_prompt_is_scored(own):
    question = f"Which prompt begins with {own!r}"
    assert scored(question, QA.format(question=question)) == [question]
