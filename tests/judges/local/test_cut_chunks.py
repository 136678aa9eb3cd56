"""A chunk that begins in the middle of a sentence is read with the one before it."""

from __future__ import annotations

from ragaliq.judges.local.context import ContextIndex
from ragaliq.judges.local.verdict import Verifier

SENTENCE = "The old harbour of Ostend was rebuilt by engineers after the great storm of 1953."


def test_a_sentence_cut_in_two_still_supports_its_claim():
    whole = Verifier([SENTENCE]).decide(SENTENCE)
    cut = Verifier([SENTENCE[:45], SENTENCE[45:]]).decide(SENTENCE)
    apart = Verifier([SENTENCE[45:], "Trains run hourly.", SENTENCE[:45]]).decide(SENTENCE)
    assert cut.verdict == whole.verdict == "SUPPORTED"
    assert whole.confidence >= cut.confidence > apart.confidence
    assert cut.evidence in (SENTENCE[:45].strip(), SENTENCE[45:].strip())


def test_chunks_that_begin_anew_are_passages_of_their_own():
    def passages(*chunks):
        return ContextIndex(chunks).passage_of

    assert passages("It grew", "and shrank", "again.", "then died", "Paris") == [0, 0, 0, 3, 4]
    assert passages("It grew.", "and shrank", "", "again") == [0, 1, 3]
