"""`ragaliq evaluate` and `judge bench` with requests that are written and replies that are read."""

import json
from pathlib import Path

import pytest

CASE = {"query": "When?", "context": ["The shop opens at 9."], "response": "It opens at 9."}
GRADED = {
    "statements": [
        {
            "statement": "The shop opens at 9.",
            "reason": "It says so.",
            "evidence": "The shop opens at 9.",
            "chunk_ids": [0],
            "verdict": "SUPPORTED",
            "confidence": 0.95,
        }
    ]
}
CLAUDE = ("--judge", "claude", "--strategy", "single_pass")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
@pytest.mark.parametrize(
    "command",
    [("evaluate", "cases.jsonl", *CLAUDE), ("judge", "bench", "labels.jsonl", *CLAUDE[:2])],
)
def test_requests_that_cannot_be_written_end_the_command(ragaliq, write_cases, command):
    write_cases(CASE)
    write_cases(
        {"claim": "It opens.", "context": ["It opens at 9."], "label": 1}, name="labels.jsonl"
    )
    done = ragaliq(*command, "--render", "/dev/full", code=3)
    assert "/dev/full: No space left on device" in done.stderr


def test_an_evaluation_in_one_pass_is_written_and_read(ragaliq, write_cases, records, tmp_path):
    cases = write_cases(CASE)
    done = ragaliq("evaluate", cases, *CLAUDE, "--render", "[b]requests.jsonl")
    assert "[b]requests.jsonl: 2 requests; nothing was sent" in done.stderr
    requests = [
        json.loads(line) for line in (tmp_path / "[b]requests.jsonl").read_text().splitlines()
    ]
    texts = {"statements": GRADED, "score": {"reasoning": "It is.", "score": 0.9}}
    (tmp_path / "replies.jsonl").write_text(
        "".join(
            json.dumps({"id": request["id"], "text": json.dumps(texts[field])}) + "\n"
            for request in requests
            for field in texts
            if field in request["schema"]["properties"]
        )
    )
    done = ragaliq("evaluate", cases, *CLAUDE, "--replies", "replies.jsonl", "--out", "r.jsonl")
    (record,) = records("r.jsonl")
    scores = {name: result["score"] for name, result in record["results"].items()}
    assert scores == {"faithfulness": 1.0, "relevance": 0.9}
    assert record["results"]["faithfulness"]["claims"][0]["evidence_verified"]
