"""Cases without a context say why, and so does the handler."""

from langchain_core.output_parsers import StrOutputParser
from langchain_parts import Finding, model, rag
from rag_parts import QUESTION


def test_without_a_context_the_case_and_the_handler_say_why(watch):
    rag(Finding() | (lambda found: [])).invoke(QUESTION, watch.config)
    rag(Finding(texts=[])).invoke(QUESTION, watch.config)
    model().pipe(StrOutputParser()).invoke(QUESTION, watch.config)
    reasons = ["not_in_prompt", "nothing_found", "nothing_retrieved"]
    assert [case.sources.no_context for case in watch.cases] == reasons
    assert watch.monitor.stats().without_context == dict.fromkeys(reasons, 1)
    explained = watch.handler.explain(watch.cases[0].id)
    assert (explained.outcome, explained.sources.no_context) == ("submitted", "not_in_prompt")
