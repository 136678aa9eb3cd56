"""Attributes of the public conventions have the names that the conventions' own packages give."""

import ast
from pathlib import Path

import openinference.semconv.trace as openinference
import pytest
from opentelemetry.semconv._incubating.attributes import (
    db_attributes,
    exception_attributes,
    gen_ai_attributes,
    session_attributes,
)

from ragaliq.traces import conventions, llama_index, messages

# Not among the lowest versions, where the other packages lack newer names.
openllmetry = pytest.importorskip("opentelemetry.semconv_ai")

BEGINNINGS = (
    "db. exception. gen_ai. input. llm. message. openinference.span output. prompt. reranker. "
    "retrieval. session. tool_call. traceloop."
)
OTHERS = {
    # Logs and events, of which the package has no names, and what older releases called them.
    "gen_ai.client.inference.operation.details",
    *("gen_ai.system.message", "gen_ai.user.message", "gen_ai.assistant.message"),
    *("gen_ai.tool.message", "gen_ai.choice"),
    *("gen_ai.content.prompt", "gen_ai.content.completion"),
    "gen_ai.prompt.variable.*",  # of OpenTelemetry's instrumentation of LangChain
    "llm.messages",  # VoltAgent's
    *("db.vector.query.content", "db.vector.query.response.documents"),  # Spring AI's
    # Rules for one product.
    *("traceloop.langchain_prompt", "traceloop.llama_index_retriever"),
    "traceloop.llama_index_tool",
}


def names_in(module):
    """Texts of a module that may name attributes of the public conventions."""
    texts = {
        node.value
        for node in ast.walk(ast.parse(Path(module.__file__).read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    named = {text for text in texts if text.startswith(tuple(BEGINNINGS.split()))}
    return {text for text in named if " " not in text and not text.endswith(".")}


def names_of(package):
    classes = [each for each in vars(package).values() if isinstance(each, type)]
    held = [value for each in (package, *classes) for value in vars(each).values()]
    return {value for value in held if isinstance(value, str)}


def known():
    packages = (db_attributes, exception_attributes, gen_ai_attributes, session_attributes)
    return set().union(*map(names_of, (*packages, openinference, openllmetry)))


@pytest.mark.parametrize("module", [conventions, llama_index, messages])
def test_a_name_that_no_package_has_is_an_exception_with_an_owner(module):
    assert names_in(module) - known() - OTHERS == set()


def test_every_exception_is_read_and_unknown_to_the_packages():
    read = set().union(*map(names_in, (conventions, llama_index, messages)))
    assert read >= OTHERS
    assert OTHERS.isdisjoint(known())


def test_the_kinds_of_operations_are_those_of_the_package():
    named = {each.value for each in gen_ai_attributes.GenAiOperationNameValues}
    # Of older or newer releases, and what instrumentations add.
    added = {"evaluation", "rerank", "search_memory", "vector_db_retrieve"}
    assert set(conventions.OPERATIONS) - named <= added
    assert named >= {"chat", "execute_tool", "invoke_agent", "retrieval"}


def test_the_kinds_of_openinference_are_those_of_the_package():
    kinds = {each.value for each in openinference.OpenInferenceSpanKindValues}
    ours = {each.value for each in conventions.Kind} | {"UNKNOWN"}
    # Neither is a step of a run.
    assert kinds - ours <= {"GUARDRAIL", "DECISION"}
