"""Requests with values that fail, wait or never end go on as if nothing were attached."""

import itertools
from decimal import Decimal

import pytest
from llama_index.core.base.response.schema import Response
from llama_index.core.instrumentation.dispatcher import instrument_tags
from llama_index.core.query_engine import CustomQueryEngine

from llama_index.evaluation.ragaliq.reading import READER

QUESTION = "How long do refunds take?"
ANSWER = "Refunds take five days."


def fail(*args):
    raise AssertionError("the application's code was run")


class Text(str):
    __str__ = __len__ = __eq__ = __bool__ = strip = startswith = fail
    __hash__ = str.__hash__


class Nodes(list):
    __len__ = __bool__ = __getitem__ = fail

    def __iter__(self):
        return itertools.repeat(list.__getitem__(self, 0))


class Found(CustomQueryEngine):
    """Returns the answer that it is given, from the nodes that it is given."""

    response: object

    def custom_query(self, query_str):
        return self.response


def test_an_answer_of_a_class_of_its_own_is_read_as_the_text_that_it_is(
    monitor, handler, nodes, docs
):

    made = Response(response=Text(ANSWER), source_nodes=Nodes(nodes(*docs)))
    assert Found(response=made).query(QUESTION) is made
    question, contexts, answer = monitor.only[:3]
    assert (question, contexts, answer) == (QUESTION, docs, ANSWER)


@pytest.mark.parametrize(
    ("score", "read"),
    [(Decimal("0.5"), 0.5), ("0.5", 0.5), ("high", None), (Decimal("sNaN"), None)],
)
def test_scores_of_any_kind_lose_no_run(nodes, score, read):

    (node,) = nodes(ANSWER)
    node.__dict__["score"] = score
    assert READER.passage(node).score == read


def test_a_session_that_is_no_name_holds_nothing_up(engine, monitor, handler):
    class Session:
        __str__ = __repr__ = fail

    with instrument_tags({"session_id": Session(), "tier": Text("gold")}):
        engine().query(QUESTION)
    assert monitor.outcomes == {"evaluated": 1}
