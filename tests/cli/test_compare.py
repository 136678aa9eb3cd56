"""`ragaliq compare`: which case of one file is which of the other, and what changed."""

import json
import re
from xml.etree import ElementTree

import pytest

OPENS, PARROTS = "The shop opens at 9.", "Parrots juggle seventeen lanterns."
GOOD = {"query": "When?", "context": [OPENS], "response": OPENS}
BAD = GOOD | {"response": f"{OPENS} {PARROTS}"}


def asked(number, *, right=True, **changes):
    """A row without an id, with a question of its own."""
    fact = f"Room {number} is blue."
    answer = fact if right else PARROTS
    return {"query": f"What is room {number}?", "context": [fact], "response": answer} | changes


@pytest.fixture
def compare(ragaliq, tmp_path):
    """Judges two lists of rows and compares the results."""

    def run(first, second, *options, code=0):
        for name, rows in {"first": first, "second": second}.items():
            path = tmp_path / f"{name}-rows.jsonl"
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
            ragaliq(
                "evaluate", path, "--out", f"{name}.jsonl", "--metrics", "faithfulness", *options
            )
        return ragaliq("compare", "first.jsonl", "second.jsonl", code=code)

    return run


def named(*rows):
    return [{"id": f"case-{number}"} | row for number, row in enumerate(rows)]


def test_it_says_which_cases_changed_and_what_was_asked(compare):
    done = compare(named(GOOD, GOOD, BAD), named(GOOD, BAD, BAD))

    assert "3 cases paired (3 by id)" in done.stdout
    assert "-0.17" in done.stdout
    assert "faithfulness 1.00 -> 0.50  case-1  When?" in done.stdout
    assert "case-0" not in done.stdout


def test_scores_of_different_epochs_are_not_averaged_unless_asked(compare, ragaliq):
    compare(named(GOOD), named(BAD))
    other = ("--metrics", "faithfulness", "--threshold", "faithfulness=0.9")
    ragaliq("evaluate", "second-rows.jsonl", "--out", "other.jsonl", *other)

    refused = ragaliq("compare", "first.jsonl", "other.jsonl", code=3)
    done = ragaliq("compare", "first.jsonl", "other.jsonl", "--across-judges")

    assert (
        "faithfulness was scored in two ways, by local with threshold 0.7, epoch " in refused.stderr
    )
    assert "-0.5" in done.stdout


def test_changed_answers_stand_side_by_side_in_a_page(compare, ragaliq, tmp_path):
    hostile = "</style><script>window.hit = 1</script>"
    compare(
        named(GOOD, GOOD | {"query": f"When {hostile}?"}, BAD),
        named(GOOD, BAD | {"query": f"When {hostile}?"}, GOOD),
    )
    ragaliq("compare", "first.jsonl", "second.jsonl", "-o", "page.html")

    page = (tmp_path / "page.html").read_text()
    assert "3 cases paired (3 by id)" in page
    assert "<script" not in page
    titles = re.findall(r'<h3 dir="auto">(.*?)</h3>', page)
    assert [title[:6] for title in titles] == ["case-1", "case-2"]
    lost, won = page.split("<article")[1:]
    assert lost.index(f'data-tag="S">{OPENS}') < lost.index(f'data-tag="N">{PARROTS}')
    assert won.index(f'data-tag="N">{PARROTS}') < won.rindex(f'data-tag="S">{OPENS}')


def test_it_says_what_has_no_partner(compare, ragaliq):
    compare(named(GOOD, GOOD), named(GOOD))
    both = ("--metrics", "faithfulness,relevance")
    ragaliq("evaluate", "first-rows.jsonl", "--out", "both.jsonl", *both)

    done = ragaliq("compare", "both.jsonl", "second.jsonl")

    assert "no partner: 1 in both.jsonl, 0 in second.jsonl" in done.stdout
    assert "relevance is in one of the two files only" in done.stderr
    assert "faithfulness: scores without a partner in the other file: 1" in done.stderr


@pytest.mark.parametrize("options", [(), ("--no-text",)])
def test_rows_without_ids_are_paired_by_what_was_asked_wherever_they_are(compare, options):
    first = [asked(1), asked(2, right=False), asked(3)]
    second = [asked(9), asked(3), asked(2), asked(1)]

    done = compare(first, second, *options)

    assert "3 cases paired (3 by question and context)" in done.stdout
    assert "faithfulness 0.00 -> 1.00  row 2 / row 3" in done.stdout
    assert done.stdout.count(" -> ") == 1


def test_rows_that_ask_the_same_are_paired_in_their_order(compare):
    done = compare([GOOD] * 11 + [BAD], [GOOD] * 12)

    assert "12 cases paired" in done.stdout
    assert "0.50 -> 1.00  row 12" in done.stdout
    assert done.stdout.count(" -> ") == 1


def test_another_retriever_leaves_the_question_to_pair_by(compare):
    first = [asked(1), asked(2), asked(2, context=["Rooms."])]
    second = [asked(1, context=["Rooms have colours."], right=False), asked(2)]

    done = compare(first, second)

    assert "2 cases paired (1 by question, 1 by question and context)" in done.stdout


@pytest.mark.parametrize("options", [(), ("--no-text",)])
def test_unrelated_data_sets_are_refused(compare, options):
    done = compare([asked(1), asked(2)], [asked(3, right=False), asked(4)], *options, code=3)

    assert done.stdout == ""
    assert "share no case, neither by an id nor by its question and context" in done.stderr
    assert "compare two runs over the same questions" in done.stderr


def test_data_sets_that_share_their_ids_only_are_refused(compare):
    done = compare(named(asked(1), asked(2)), named(asked(3), asked(4)), code=3)

    assert "share 2 ids and not one question" in done.stderr


def test_a_reworded_question_keeps_its_id(compare):
    second = named(asked(1), asked(2, query="Which colour has room 2?", right=False))

    done = compare(named(asked(1), asked(2)), second)

    assert "2 cases paired (2 by id)" in done.stdout
    assert "1 pairs have the same id and another question" in done.stderr


def test_a_few_cases_are_too_few_for_an_interval(compare):
    done = compare(named(GOOD, GOOD), named(GOOD, GOOD))

    assert "too few for an" in done.stdout
    assert "no clear change" in done.stdout


@pytest.mark.parametrize(("losses", "is_clear"), [(3, False), (7, True)])
def test_a_few_losses_that_chance_gives_as_well_are_not_clear(compare, losses, is_clear):
    """Of three changes that go either way alike, one time in four all go the same."""
    done = compare(named(*[GOOD] * 25), named(*[BAD] * losses, *[GOOD] * (25 - losses)))

    assert ("worse" if is_clear else "no clear change") in done.stdout


# The gate in CI.


@pytest.fixture
def runs(compare):
    """Two runs of 25 cases, the second with seven losses: `first.jsonl` and `second.jsonl`."""
    compare(named(*[GOOD] * 25), named(*[BAD] * 7, *[GOOD] * 18))


GATES = {
    "any metric, at the end": (("first.jsonl", "second.jsonl", "--fail-if-worse"), 1),
    "any metric, in front": (("--fail-if-worse", "first.jsonl", "second.jsonl"), 1),
    "any metric, before an option": (
        ("first.jsonl", "second.jsonl", "--fail-if-worse", "--show", "0"),
        1,
    ),
    "by name": (("first.jsonl", "second.jsonl", "--fail-if-worse", "faithfulness"), 1),
    "within the margin": (
        ("first.jsonl", "second.jsonl", "--fail-if-worse", "faithfulness=0.2"),
        0,
    ),
    "beyond the margin": (("first.jsonl", "second.jsonl", "--fail-if-worse=faithfulness=0.1"), 1),
    "of two, one": (
        (
            *("first.jsonl", "second.jsonl", "--fail-if-worse", "faithfulness=0.9"),
            *("--fail-if-worse", "faithfulness"),
        ),
        1,
    ),
    "better is not worse": (("second.jsonl", "first.jsonl", "--fail-if-worse"), 0),
    "not asked": (("first.jsonl", "second.jsonl"), 0),
}


@pytest.mark.parametrize(("arguments", "code"), GATES.values(), ids=GATES)
def test_the_gate_fails_where_the_second_run_is_clearly_worse(ragaliq, runs, arguments, code):
    done = ragaliq("compare", *arguments, code=code)
    said = "faithfulness is worse: 1.00 -> 0.86 over 25 cases"
    assert (said in done.stderr) == bool(code)


def test_a_loss_that_may_be_chance_passes_the_gate(compare, ragaliq):
    compare(named(*[GOOD] * 25), named(*[BAD] * 3, *[GOOD] * 22))
    ragaliq("compare", "first.jsonl", "second.jsonl", "--fail-if-worse")


@pytest.mark.parametrize(
    ("gate", "code", "said"),
    [
        ("faithfulness=x", 2, "write METRIC or METRIC=MARGIN"),
        ("faithfulness=1.5", 2, "a margin within [0, 1)"),
        ("relevance", 3, "no case has a score for it in both files; they have faithfulness"),
    ],
)
def test_a_gate_that_measures_nothing_is_refused(ragaliq, runs, gate, code, said):
    done = ragaliq("compare", "first.jsonl", "second.jsonl", "--fail-if-worse", gate, code=code)
    assert said in done.stderr


def test_the_comparison_is_written_for_people_and_for_machines(ragaliq, runs, tmp_path):
    names = [f"out.{ending}" for ending in ("json", "md", "xml", "html")]
    outs = [part for name in names for part in ("--out", name)]
    ragaliq("compare", "first.jsonl", "second.jsonl", "--fail-if-worse", *outs, code=1)

    found = json.loads((tmp_path / "out.json").read_text())
    metric = found["metrics"]["faithfulness"]
    assert found["runs"] == ["first", "second"]
    assert (metric["verdict"], metric["pairs"], metric["down"]) == ("worse", 25, 7)
    assert metric["change"] == pytest.approx(-0.14)
    assert metric["interval"][0] < -0.14 < metric["interval"][1] < 0
    text = (tmp_path / "out.md").read_text()
    assert "| metric | first | second | change |" in text
    assert "| worse |" in text
    assert "- **faithfulness is worse: 1.00 -> 0.86 over 25 cases**" in text
    suite = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert suite.find("testcase/failure").get("message").startswith("faithfulness is worse")
    assert '<th scope="col">second</th>' in (tmp_path / "out.html").read_text()


def test_runs_are_called_by_their_files(ragaliq, runs, tmp_path):
    (tmp_path / "main").mkdir()
    (tmp_path / "main" / "second.jsonl").write_bytes((tmp_path / "first.jsonl").read_bytes())
    ragaliq("compare", "main/second.jsonl", "second.jsonl", "--out", "out.md")
    assert "| metric | main/second | second | change |" in (tmp_path / "out.md").read_text()
    ragaliq("compare", "first.jsonl", "second.jsonl", "--out", "out.txt", code=2)
