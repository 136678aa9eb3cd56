"""Citation precision and recall, counted by hand, in every style that answers cite in."""

import json

import pytest

from ragaliq import ContextChunk, RAGTestCase, evaluate
from ragaliq.datasets import read_cases
from ragaliq.testing import ScriptedJudge

DOCUMENTS = {
    "refunds": "Refunds are paid within five days of the return.",
    "norway": "Parcels to Norway take eight days.",
    "dogs": "Dogs are welcome in the garden.",
    "opening": "The museum opens at nine on weekdays.",
}
UNKNOWN = "missing"
NAMES = [*DOCUMENTS, UNKNOWN]

REFUNDS = "Refunds are paid within five days"
NORWAY = "Parcels to Norway take eight days"
DOGS = "Dogs are welcome in the garden"
ELEPHANTS = "Elephants receive complimentary sandwiches"

# Sentences with what they cite; recall over claims, precision over citations; each claim's worth.
ANSWERS = {
    "all right": (
        [(REFUNDS, ["refunds"]), (NORWAY, ["norway"])],
        (2 / 2, 2 / 2),
        ["supported", "supported"],
    ),
    "one names the wrong chunk": (
        [(REFUNDS, ["norway"]), (NORWAY, ["norway"])],
        (1 / 2, 1 / 2),
        ["misattributed", "supported"],
    ),
    "one is not cited": (
        [(REFUNDS, ["refunds"]), (DOGS, [])],
        (1 / 2, 1 / 1),
        ["supported", "uncited"],
    ),
    "one is cited and invented": (
        [(ELEPHANTS, ["dogs"]), (DOGS, ["dogs"])],
        (1 / 2, 1 / 2),
        ["unsupported", "supported"],
    ),
    "one citation too many": (
        [(REFUNDS, ["refunds", "dogs"]), (NORWAY, ["norway"])],
        (2 / 2, 2 / 3),
        ["supported", "supported"],
    ),
    "one names a chunk that is not there": (
        [(REFUNDS, [UNKNOWN]), (NORWAY, ["norway"]), (DOGS, ["dogs"])],
        (2 / 3, 2 / 3),
        ["misattributed", "supported", "supported"],
    ),
}


def case_of(text, *, prefix=False, **fields):
    context = [
        ContextChunk(
            text=f"Source {number}:\n{chunk}" if prefix else chunk,
            metadata={"source": f"docs/{name}.md"},
        )
        for number, (name, chunk) in enumerate(DOCUMENTS.items(), 1)
    ]
    return RAGTestCase(query="What may I do?", context=context, response=text, **fields)


def written(sentences, mark):
    """Each sentence, its citations and a full stop."""
    return " ".join(f"{text}{mark(cited)}." for text, cited in sentences)


def numbers(cited):
    return [NAMES.index(name) + 1 for name in cited]


def in_brackets(sentences):
    return case_of(written(sentences, lambda cited: f" {numbers(cited)}" if cited else ""))


def in_footnotes(sentences):
    text = " ".join(
        f"{text}.{''.join(f'[^{NAMES.index(name)}]' for name in cited)}"
        for text, cited in sentences
    )
    # Notes number as they like: what they say names the chunk.
    used = dict.fromkeys(name for _, cited in sentences for name in cited)
    notes = [f"[^{NAMES.index(name)}]: {name}.md" for name in used if name != UNKNOWN]
    return case_of("\n".join([text, "", *notes]).replace("[^4]", "[^99]"))


def by_source(sentences):
    def mark(cited):
        return f" (source: {'; '.join(f'{name}.md' for name in cited)})" if cited else ""

    return case_of(written(sentences, mark))


def as_citation_nodes(sentences):
    def mark(cited):
        return "".join(f" [{number}]" for number in numbers(cited))

    case = case_of(written(sentences, mark), prefix=True)
    return case.model_copy(update={"context": case.context[::-1]})  # a reranker's order


def as_anthropic_blocks(sentences):
    blocks = []
    for text, cited in sentences:
        citations = [
            {
                "type": "char_location",
                "cited_text": DOCUMENTS.get(name, "Nobody wrote this sentence."),
                "document_index": NAMES.index(name),
                "document_title": f"{name}.md",
            }
            for name in cited
        ]
        blocks.append({"type": "text", "text": f"{text}.", "citations": citations})
        blocks.append({"type": "text", "text": " "})
    return blocks


STYLES = [in_brackets, in_footnotes, by_source, as_citation_nodes, as_anthropic_blocks]


@pytest.mark.parametrize("style", STYLES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("name", ANSWERS)
def test_precision_and_recall_are_those_counted_by_hand(name, style, tmp_path):
    sentences, (recall, precision), worths = ANSWERS[name]
    case = style(sentences)
    if isinstance(case, list):
        row = {"question": "q", "contexts": list(DOCUMENTS.values()), "answer": case}
        path = tmp_path / "answers.jsonl"
        path.write_text(json.dumps(row), encoding="utf-8")
        [case] = read_cases(path)
    [evaluation] = evaluate([case], metrics=["citations"], judge="local")
    result = evaluation.results["citations"]
    raw = result.raw_response
    assert [row["citation"] for row in raw["claims"]] == worths
    assert (raw["recall"], raw["precision"]) == pytest.approx((recall, precision))
    assert result.score == pytest.approx(2 * recall * precision / (recall + precision))


def verdict_of(text):
    [evaluation] = evaluate([case_of(text)], metrics=["citations"], judge="local")
    return [
        (row["citation"], row["cited_chunk_ids"])
        for row in evaluation.results["citations"].raw_response["claims"]
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{REFUNDS} [1][2].", [("supported", [0, 1])]),
        (f"{REFUNDS} [1-3].", [("supported", [0, 1, 2])]),
        (f"{REFUNDS}【1†refunds】.", [("supported", [0])]),
        (f"{REFUNDS}. [1]", [("supported", [0])]),
        (f"{REFUNDS}. (Source: Refunds.MD, p. 3)", [("supported", [0])]),
        (f"{REFUNDS} [source: docs/refunds.md].", [("supported", [0])]),
        (f"{REFUNDS} [7].", [("misattributed", [None])]),
        (f"{REFUNDS}.", [("uncited", [])]),
        (f"{REFUNDS} [1].\n\nSources:\n[1] dogs.md", [("misattributed", [2])]),
    ],
)
def test_what_a_marker_names(text, expected):
    assert verdict_of(text)[:1] == expected


def test_a_citation_inside_a_sentence_speaks_for_what_stands_before_it():
    judge = ScriptedJudge(claims=[REFUNDS, DOGS])
    case = case_of(f"{REFUNDS} [1] and dogs are welcome in the garden [3].")
    [evaluation] = evaluate([case], metrics=["citations"], judge=judge)
    raw = evaluation.results["citations"].raw_response
    assert [row["cited_chunk_ids"] for row in raw["claims"]] == [[0], [2]]


@pytest.mark.parametrize("mark", ["", " (source: refunds.md)", " [1]"])
def test_a_citation_changes_no_verdict_nor_the_place_of_its_claim(mark):
    case = case_of(f"{REFUNDS}{mark}.")
    [evaluation] = evaluate([case], metrics=["faithfulness"], judge="local")
    [claim] = evaluation.results["faithfulness"].claims
    start, end = claim.answer_span
    assert claim.verdict == "SUPPORTED"
    assert case.response[start:end].startswith(REFUNDS)


@pytest.mark.parametrize("text", ["", "[1] [2]", "(source: )", "[^1]:", "I cannot say. [1]"])
def test_an_answer_without_claims_is_not_scored_and_one_without_citations_scores_nothing(text):
    judge = ScriptedJudge(claims=[])
    [evaluation] = evaluate([case_of(text)], metrics=["citations"], judge=judge)
    assert evaluation.results["citations"].score is None
    [uncited] = evaluate([case_of(f"{REFUNDS}.")], metrics=["citations"], judge="local")
    result = uncited.results["citations"]
    assert (result.score, result.passed) == (0.0, False)
    assert result.reasoning == "The answer cites nothing."
