"""Prompts: files, checked when they are loaded, filled in once."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaliq.errors import ConfigurationError
from ragaliq.judges.prompting import PLACEHOLDERS, PromptSet
from ragaliq.judges.wire import ClaimsReply, GradedReply, ScoreReply, VerdictsReply, schema_of

GOOD = "Compare {{question}} and {{answer}}."


def test_version_1_of_our_prompts_stays_available_by_name():
    old = PromptSet("v1")
    assert set(old.texts) == set(PromptSet().texts) == set(PLACEHOLDERS)
    assert {name for name, text in PromptSet().texts.items() if text != old.texts[name]} == {
        "system",
        "extract_statements",
        "verify_claims",
        "grade_statements",
    }
    claims = old.render("verify_claims", context="", claims="").text
    assert "without further assumptions" in claims


def test_a_case_in_two_calls_takes_fewer_characters_of_prompt_than_in_version_1():
    def characters(prompts):
        first = prompts.render("extract_statements", question="", answer="")
        second = prompts.render("verify_claims", context="", claims="")
        forms = (ClaimsReply, VerdictsReply)
        schemas = (len(json.dumps(schema_of(form))) for form in forms)
        return sum(len(each.system + each.text) for each in (first, second)) + sum(schemas)

    assert characters(PromptSet()) < 4_400
    assert characters(PromptSet("v1")) > 5_250


UNKNOWN = r"unknown placeholder \{\{anwser\}\}.*missing.*\{\{answer\}\}"
ONE_IS_MISSING = r"missing placeholder \{\{answer\}\}; it takes \{\{answer\}\}, \{\{que"
BOTH_ARE_MISSING = r"missing placeholder \{\{answer\}\}, \{\{question\}\}"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("relevance", "{{question}} {{anwser}}", UNKNOWN),
        ("relevance", "{{question}}", ONE_IS_MISSING),
        ("relevance", "{question} {answer}", BOTH_ARE_MISSING),
        ("relevance", "---\nversion: 2\n---\n  ", "is empty"),
        ("system", "Judge {{answer}}.", "it takes no placeholders"),
        ("relevancy", GOOD, "names are.*relevance"),
    ],
)
def test_a_wrong_prompt_is_refused_with_its_name(name, text, message):
    with pytest.raises(ConfigurationError, match=rf"(?s)'{name}' \(given as text\).*{message}"):
        PromptSet({name: text})


def test_prompts_come_from_files_and_folders(tmp_path):
    (tmp_path / "relevance.md").write_text(f"---\nversion: 3.1\nauthor: me\n---\n{GOOD}", "utf-8")
    (tmp_path / "notes.txt").write_text("not a prompt", "utf-8")
    other = tmp_path / "mine.txt"
    other.write_text("\ufeff" + GOOD.replace(" ", "\r\n"), "utf-8")

    for prompts in (tmp_path, tmp_path / "relevance.md", {"relevance": tmp_path / "relevance.md"}):
        assert PromptSet(prompts).texts["relevance"] == GOOD
    rendered = PromptSet({"relevance": other}).render("relevance", question="Q", answer="A")
    assert rendered.text == "Compare\nQ\nand\nA."


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("relevance.md", b"{{query}}", r"relevance\.md"),
        ("relevancy.md", GOOD.encode(), r"relevancy\.md"),
        ("relevance.md", b"\xff\xfe\xff", "cannot read the prompt file"),
        ("notes.txt", b"", r"holds no \.md file"),
    ],
)
def test_a_file_or_folder_that_cannot_be_used_is_named(tmp_path, file, content, message):
    (tmp_path / file).write_bytes(content)
    with pytest.raises(ConfigurationError, match=message):
        PromptSet(tmp_path)
    for prompts in ({"relevance": tmp_path / "missing.md"}, tmp_path / "no-folder"):
        with pytest.raises(ConfigurationError, match="cannot read the prompt file"):
            PromptSet(prompts)


@pytest.mark.parametrize("prompts", ["relevance.md", 3, ["x"]])
def test_prompts_of_a_wrong_type_are_refused(prompts):
    with pytest.raises(ConfigurationError, match=r"pathlib\.Path"):
        PromptSet(prompts)


@given(question=st.text(), answer=st.text())
def test_what_is_filled_in_is_never_looked_at_again(question, answer):
    question = "{{answer}}" + question + "\\1 {answer} %s"

    rendered = PromptSet({"relevance": GOOD}).render("relevance", question=question, answer=answer)

    assert rendered.text == f"Compare {question} and {answer}."


def test_braces_that_are_no_placeholder_stay():
    prompts = PromptSet({"relevance": GOOD + ' Example: {"a": {}} {{"b": 1}} {{}}'})

    assert prompts.render("relevance", question="", answer="").text.endswith(
        'Example: {"a": {}} {{"b": 1}} {{}}'
    )


def test_the_part_shared_between_calls_ends_with_the_context_that_comes_first():
    rendered = PromptSet().render("verify_claims", context="CONTEXT", claims="CLAIMS")
    assert rendered.shared == "CONTEXT"
    assert rendered.request.strip().startswith("CLAIMS")
    turned = PromptSet({"verify_claims": "{{claims}} {{context}}"})
    assert turned.render("verify_claims", context="a", claims="b").shared == ""


REPLIES = (ClaimsReply, VerdictsReply, GradedReply, ScoreReply)


def objects(value):
    if isinstance(value, dict):
        if value.get("type") == "object":
            yield value
        for part in value.values():
            yield from objects(part)


@pytest.mark.parametrize("reply", REPLIES)
def test_a_schema_is_closed_complete_and_without_references(reply):
    schema = schema_of(reply)

    assert list(schema["properties"]) == list(reply.model_fields)
    for part in objects(schema):
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])
    written = json.dumps(schema)
    for word in ("$ref", "$defs", '"title"', "anyOf", "default"):
        assert word not in written
