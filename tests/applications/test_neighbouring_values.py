"""Line 12: a value of the chunk next to it supports no claim."""

import pytest
from langchain_parts import HOURS, PARKING, REFUNDS, Finding, model, rag
from rag_parts import QUESTION

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import Monitor


@pytest.mark.parametrize(
    ("reply", "is_supported"),
    [
        ("Refunds take nine days after the parcel has arrived.", False),
        ("Refunds take two days after the parcel has arrived.", False),
        ("The shop opens at five and closes at six.", False),
        ("Parking costs five euros for every hour.", False),
        ("Refunds take five days after the parcel has arrived.", True),
        ("The shop opens at nine and closes at six.", True),
    ],
)
def test_a_value_of_the_chunk_next_to_it_supports_no_claim(reply, is_supported):
    results = []
    monitor = Monitor(judge="local", executor="thread", on_result=results.append)
    config = {"callbacks": [RagaliqCallbackHandler(monitor)]}
    rag(Finding(texts=[HOURS, REFUNDS, PARKING]), model(reply)).invoke(QUESTION, config)
    assert monitor.close(30)
    (claim,) = results[0].results["faithfulness"].claims
    assert (claim.verdict == "SUPPORTED") == is_supported
