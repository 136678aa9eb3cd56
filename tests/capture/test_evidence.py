"""The evidence of an answer is what its model was shown, but for models' words and the question."""

import copy
import json
import time

import pytest

from ragaliq import Passage, Turn
from ragaliq.capture import Found, Message, RunLog
from ragaliq.capture.phrases import MarkedText
from ragaliq.capture.transcripts import mark_transcript

QUESTION = "How long do refunds take?"
ANSWER = "It takes five days until the money is there."
REFUNDS = Passage("Refunds take five days after we got the parcel.", "r1", 0.9)
CARDS = Passage("Refunds are paid to the card that was charged.", "r2")
SHIPPING = Passage("Parcels leave the warehouse on Monday. Shipping is free above 50 euros.", "s1")


def user(*texts):
    return Message("user", tuple(texts))


def system(*texts):
    return Message("system", tuple(texts))


def said(*texts):
    return Message("assistant", tuple(texts))


def tool(*texts):
    return Message("tool", tuple(texts))


class Run:
    """A run told in a few words."""

    def __init__(self):
        self.log = RunLog("root")
        self._steps = 0

    def _step(self, parent="root"):
        self._steps += 1
        self.log.began(self._steps, parent)
        return self._steps

    def retrieve(self, *passages, parent="root"):
        step = self._step(parent)
        self.log.searched(step)
        self.log.retrieved(step, passages)
        return self

    def tool(self, *texts):
        self.log.tool_returned(self._step(), [Passage(text) for text in texts])
        return self

    def agent(self, reply, *messages, label=""):
        """A tool that says what a model of its own replied."""
        step = self._step()
        self.ask(*messages, reply=reply, parent=step)
        self.log.tool_returned(step, [Passage(label + reply)])
        return self

    def ask(self, *messages, reply=ANSWER, also=(), parent="root"):
        step = self._step(parent)
        self.log.model_called(step, messages)
        self.log.replied(step, reply, also)
        return self

    def find(self, answer=ANSWER, question=QUESTION):
        log = copy.copy(self.log)  # runs are asked several times here, as they grow
        log.question, log.answer = Found(question, ""), Found(answer, "")
        return log.found_context

    def context(self, answer=ANSWER):
        return list(self.find(answer).passages)


def prompt(*passages, question=QUESTION):
    return user("Use this:\n" + "\n\n".join(p.text for p in passages) + f"\n\n{question}")


def test_passages_that_stand_in_the_prompt_are_the_context_with_id_and_score():
    found = Run().retrieve(REFUNDS, CARDS, SHIPPING).ask(prompt(CARDS, REFUNDS)).find()
    assert (found.passages, found.source, found.missing) == ([CARDS, REFUNDS], "prompt", "")


@pytest.mark.parametrize(
    "written",
    [
        REFUNDS.text.replace(" ", "\n  "),
        f"<doc>**{REFUNDS.text}**</doc>",
        json.dumps({"text": f"Ä {REFUNDS.text}\n"}),
        REFUNDS.text.upper(),
    ],
)
def test_white_space_markup_and_escapes_make_no_difference(written):
    assert Run().retrieve(REFUNDS).ask(user(written)).context() == [REFUNDS]


def test_a_passage_that_was_cut_counts_as_far_as_it_was_shown():
    run = Run().retrieve(SHIPPING).ask(user(SHIPPING.text[:40]), user(QUESTION))
    assert run.context() == [SHIPPING._replace(text="Parcels leave the warehouse on Monday.")]
    run = Run().retrieve(SHIPPING).ask(user("Known: Shipping is free above 50 euros."))
    assert run.context() == [SHIPPING._replace(text="Shipping is free above 50 euros.")]


def test_the_overlap_with_a_shown_piece_does_not_make_another_piece_shown():
    other = Passage("Shipping is free above 50 euros. Returns are not.", "s2")
    assert Run().retrieve(SHIPPING, other).ask(prompt(SHIPPING)).context() == [SHIPPING]


def test_a_document_that_was_written_out_otherwise_is_evidence_with_the_rest_of_the_prompt():
    row = Passage(
        "name: Refund desk, phone: 0731 5550, hours: nine to five on weekdays, floor: two, in: Ulm"
    )
    table = "| hours | nine to five on weekdays |\n| phone | 0731 5550 |\n| floor | two |"
    found = Run().retrieve(row).ask(user(table)).find()
    assert (found.passages, found.prompt, found.missing) == ([], table, "")
    found = Run().retrieve(row).ask(user("Say what you know of Ulm.")).find()
    assert (found.passages, found.missing) == ([], "not_in_prompt")


@pytest.mark.parametrize("others", [0, 20])
def test_a_child_that_is_shown_within_its_parent_only_is_no_chunk_of_its_own(others):
    parent = Passage(f"{REFUNDS.text} {CARDS.text}", "p")
    more = [Passage(f"Rule {n} says what is done on day {n}.", f"{n}") for n in range(others)]
    run = Run().retrieve(REFUNDS, *more).retrieve(parent).ask(prompt(parent, *more))
    assert run.context() == [parent, *more]
    run = Run().retrieve(REFUNDS, *more).retrieve(parent).ask(prompt(parent, REFUNDS, *more))
    assert run.context() == [parent, REFUNDS, *more]


def test_a_graders_and_a_routers_prompt_do_not_count():
    run = Run().ask(user("Which store?"), reply="refunds").retrieve(REFUNDS, SHIPPING)
    run.ask(prompt(REFUNDS), reply="yes").ask(prompt(SHIPPING), reply="no")
    run.ask(prompt(REFUNDS)).ask(prompt(REFUNDS, SHIPPING, question=ANSWER), reply="grounded: yes")
    assert run.context() == [REFUNDS]


def test_what_an_earlier_reply_in_the_prompt_was_made_from_counts_and_the_reply_does_not():
    part = "From the first part: it takes five days."
    run = Run().retrieve(REFUNDS, CARDS, SHIPPING).ask(prompt(REFUNDS), reply=part)
    run.log.retrieved("late", [Passage(part)])
    run.ask(user(f"So far: {part}", CARDS.text))
    assert run.context() == [REFUNDS, CARDS]


def test_several_replies_that_make_the_answer_up_count_each():
    first, second = "Response 1: it takes five days.", "Response 2: it goes to the card."
    run = Run().retrieve(REFUNDS, CARDS, SHIPPING)
    run.ask(prompt(REFUNDS), reply=first).ask(prompt(CARDS), reply=second)
    run.ask(prompt(SHIPPING), reply="Nothing is known about that, sorry to say.")
    assert run.context(f"{first}\n------\n{second}") == [REFUNDS, CARDS]


def test_equal_replies_count_as_often_as_they_stand_in_the_answer():
    run = Run().retrieve(REFUNDS, CARDS)
    for passage in (REFUNDS, CARDS, REFUNDS):
        run.ask(user(passage.text), reply="That is in the policy.")
    once = run.find("All in all: That is in the policy. No more.")
    twice = run.find("That is in the policy.\n\nThat is in the policy.")
    assert [passage.id for passage in once.passages] == ["r1"]
    assert sorted(passage.id for passage in twice.passages) == ["r1", "r2"]


def test_a_structured_reply_is_the_answers_even_if_a_tool_call_holds_it():
    run = (
        Run()
        .retrieve(REFUNDS, CARDS)
        .ask(prompt(CARDS), reply="no")
        .ask(prompt(REFUNDS), reply="", also=(ANSWER, "high"))
    )
    assert run.context() == [REFUNDS]
    reply = json.dumps({"answer": ANSWER, "sources": [1]})
    assert Run().retrieve(REFUNDS).ask(prompt(REFUNDS), reply=reply).context() == [REFUNDS]


def test_an_answer_that_was_touched_up_is_still_the_models():
    run = Run().retrieve(REFUNDS, CARDS).ask(prompt(REFUNDS)).ask(prompt(CARDS), reply="yes")
    assert run.context("It takes five days [1] until the money is there [2], we think.") == [
        REFUNDS
    ]


def test_this_turns_tool_messages_count_whole_where_no_passage_stands_in_them():
    run = Run().retrieve(REFUNDS).ask(
        user("Earlier?"), tool("Old news."), said("Earlier."), user(QUESTION),
        tool(f"Found: {REFUNDS.text}"), tool("It is noon.", "It is hot."),
    )  # fmt: skip
    assert run.context() == [REFUNDS, Passage("It is noon."), Passage("It is hot.")]


def test_a_tool_that_repeats_a_models_reply_leads_to_what_that_model_was_shown():
    run = Run().retrieve(REFUNDS)
    run.agent("Five.", prompt(REFUNDS)).ask(user(QUESTION), tool("Five."))
    assert run.context() == [REFUNDS]
    run = Run().retrieve(REFUNDS).agent("Five days.", prompt(REFUNDS), label="Expert: ")
    assert run.ask(user(QUESTION), tool("Expert: Five days.")).context() == [REFUNDS]
    run = Run().ask(user("Hm?"), reply="It takes five days, I think.")
    run.tool("It takes five days, I think.").ask(
        user(QUESTION), tool("It takes five days, I think.")
    )
    assert (run.context(), run.find().missing) == ([], "only_replies")


def test_what_a_tool_said_is_evidence_though_the_model_repeats_it():
    run = Run().tool(ANSWER).ask(user(QUESTION), tool(ANSWER))
    assert run.context() == [Passage(ANSWER)]


def test_what_the_assistant_said_is_no_evidence():
    run = Run().retrieve(REFUNDS).ask(user("a"), said(REFUNDS.text), user(QUESTION))
    assert (run.context(), run.find().missing) == ([], "not_in_prompt")


def test_a_part_of_what_a_model_wrote_is_no_evidence_and_one_found_before_is():
    note = "Parcels go back to the depot in Oslo first."
    for reply, also in (
        (f'["{note}", "Money is paid in the evening."]', ()),
        ("", (note, "Money is paid in the evening.")),
    ):
        run = Run().ask(user("Plan."), reply=reply, also=also)
        run.log.text_passed("step", note, "notes")
        found = run.ask(user(f"{note} {QUESTION}")).find()
        assert found.passages == []
        assert note not in found.prompt
    run = Run()
    run.log.text_passed("step", REFUNDS.text, "notes")
    run.ask(prompt(REFUNDS), reply=f"Plan: {REFUNDS.text}").ask(prompt(REFUNDS, CARDS))
    assert REFUNDS.text in run.find().prompt


def test_a_document_is_evidence_though_a_model_had_guessed_its_words():
    run = Run().ask(user("Guess."), reply=ANSWER)
    run.log.began("search", "root")
    run.log.searched("search", ANSWER)
    run.log.retrieved("search", [Passage(ANSWER, "d1")])
    assert run.ask(user(f"{ANSWER}\n{QUESTION}")).context() == [Passage(ANSWER, "d1")]


def test_a_remembered_message_of_the_assistants_is_no_evidence_and_a_transcript_is():
    note, call = "ai: It is nine days.", "Assistant: It is nine days.\nCustomer: Too long."
    for text, shown in ((note, []), (call, [call])):
        found = Run().retrieve(Passage(text)).ask(prompt(Passage(text))).context()
        assert [passage.text for passage in found] == shown


@pytest.mark.parametrize(
    "form",
    [
        "Human: Is it red?\nAI: Sure.",
        "Q: Is it red?\nA: Sure.",
        "[HumanMessage(content='Is it red?'), AIMessage(content='Sure.')]",
        "[{'role': 'user', 'content': 'Is it red?'}, {'role': 'assistant', 'content': 'Sure.'}]",
        '<message type="human">Is it red?</message>\n<message type="ai">Sure.</message>',
        "<|im_start|>user\nIs it red?<|im_end|>\n<|im_start|>assistant\nSure.<|im_end|>",
        "<s>[INST] Is it red? [/INST] Sure. </s>",
    ],
)
def test_short_turns_are_no_evidence_however_a_prompt_is_written_with_them(form):
    run = Run()
    run.log.remembered = [
        Turn(role="user", text="Is it red?"),
        Turn(role="assistant", text="Sure."),
    ]
    prompt = run.ask(user(f"It is late.\n{form}\n\n{QUESTION}")).find().prompt
    assert "late" in prompt
    assert "red" not in prompt
    assert "Sure" not in prompt


def test_a_question_to_the_assistant_is_no_evidence_where_its_conversation_is_not_known():
    said_so = "I moved to Bergen."
    talk = f"User: Is it red?\nAssistant: Sure.\nUser: {said_so} Is it far?\nAssistant: Yes."
    prompt = Run().ask(user(f"{talk}\n\n{QUESTION}")).find().prompt
    assert "red" not in prompt
    assert said_so in prompt


def test_a_short_turn_stays_where_it_is_a_part_of_what_the_application_says():
    run = Run().ask(user("Gold?"), said("Yes."), user(f"Tier: Gold\nIs it: Yes.\n\n{QUESTION}"))
    run.log.is_conversation = True
    assert run.find().prompt == "Tier: Gold\nIs it: Yes."


def test_models_below_a_retriever_answer_nobody():
    run = Run()
    run.log.began("retriever", "root")
    run.log.searched("retriever")
    run.ask(prompt(SHIPPING), reply=ANSWER, parent="retriever")
    run.log.retrieved("retriever", [REFUNDS, SHIPPING])
    assert run.ask(prompt(REFUNDS)).context() == [REFUNDS]


def test_texts_of_the_application_are_evidence_with_the_rest_of_the_prompt():
    web = "The web says that refunds are quick in most of the cases."
    run = Run().retrieve(REFUNDS)
    run.log.text_passed("step", web, "notes")
    found = run.ask(system(f"{REFUNDS.text}\n{web}"), user(QUESTION)).find()
    assert (found.passages, found.prompt) == ([REFUNDS], f"{REFUNDS.text}\n{web}")
    run = Run()
    run.log.text_passed("step", web)
    found = run.ask(system(web), user(QUESTION)).find()
    assert (found.passages, found.prompt, found.missing) == ([], web, "")
    run = Run()
    run.log.text_passed("step", web, "context")
    assert run.ask(system(web), user(QUESTION)).context() == [Passage(web)]


@pytest.mark.parametrize(
    "text", ["You answer for the town hall. Room 12 registers dogs.", "Porter: Ida", "kort"]
)
def test_a_prompt_of_which_nothing_is_known_is_kept_however_short(text):
    found = Run().ask(system(text), user(QUESTION)).find()
    assert (found.prompt, found.missing) == (text, "nothing_retrieved")


@pytest.mark.parametrize("question", ["Und?", "和第二家呢？"])
def test_a_short_question_is_no_evidence_on_a_line_of_its_own_or_after_a_label(question):
    for written in (f"Porter: Ida\n{question}", f"Porter: Ida\nQuestion: {question}"):
        assert question not in Run().ask(user(written)).find(question=question).prompt


def test_tools_messages_of_earlier_turns_make_a_conversation_of_a_prompt():
    earlier = [user("Is there a pool?"), tool("Hotel Linde: pool"), said("No.")]
    found = Run().ask(*earlier, user(QUESTION)).find()
    assert [turn.context_texts for turn in found.history] == [[], ["Hotel Linde: pool"]]


def test_neither_the_question_nor_a_whole_prompt_is_context():
    run = Run()
    run.log.text_passed("step", f"Please answer kindly: {QUESTION}")
    run.log.text_passed("step", QUESTION, "context")
    found = run.ask(user(f"Please answer kindly: {QUESTION}")).find()
    assert (found.passages, found.prompt, found.missing) == ([], "", "nothing_retrieved")


def test_why_there_is_no_context():
    assert Run().ask(user(QUESTION)).find().missing == "nothing_retrieved"
    assert Run().retrieve().ask(user(QUESTION)).find().missing == "nothing_found"
    assert Run().retrieve(REFUNDS).ask(user(QUESTION)).find().missing == "not_in_prompt"
    assert Run().find().missing == "nothing_retrieved"


def test_languages_without_spaces_between_words():
    passage = Passage("返金は商品が届いてから五日以内に行われます。", "j")
    run = (
        Run()
        .retrieve(passage)
        .ask(user(f"資料{passage.text}に基づいて答えて"), reply="五日以内です。")
    )
    assert run.context("五日以内です。") == [passage]


def test_without_a_prompt_the_inputs_of_the_step_that_answered_decide_then_what_was_fetched():
    run = Run().retrieve(REFUNDS, CARDS)
    assert run.find()[:3] == ([REFUNDS, CARDS], "retriever", "")
    run.log.began("generate", "root")
    run.log.step_given("generate", {"documents": [CARDS]})
    run.log.text_passed("generate", ANSWER, "generation")
    assert run.find()[:3] == ([CARDS], "given", "")


def test_passages_handed_to_an_answering_step_count_where_its_prompt_shows_nothing_known():
    run = Run().retrieve(REFUNDS, CARDS)
    run.log.answering("synthesize", [CARDS])
    assert run.ask(user("Rückerstattungen gehen auf die Karte.")).find()[:3] == (
        [CARDS],
        "given",
        "",
    )
    assert Run().retrieve(REFUNDS).ask(prompt(REFUNDS)).find().source == "prompt"


@pytest.mark.parametrize(
    "words", ["Let me see {}.", "Let me see what the documents say about number {}."]
)
def test_a_long_run_of_an_agent_that_says_something_before_each_call_is_read_in_time(words):
    def seconds(said_before):
        run, messages = Run(), [user(QUESTION)]
        for number in range(100):
            documents = [f"Parcel {number}-{at} takes {at} days by land or sea." for at in range(5)]
            run.ask(*messages, reply=said_before.format(number)).tool(*documents)
            run.retrieve(*(Passage(text, text[:12]) for text in documents))
            messages += [said(said_before.format(number)), tool("\n".join(documents))]
        run.ask(*messages)
        begun = time.process_time()
        assert len(run.context()) == 500
        return time.process_time() - begun

    ratios = (seconds(words) / seconds("") for _ in range(3))
    assert any(ratio < 10.0 for ratio in ratios)


LAMPS = [Passage(f"A {each} lamp of the year.", each) for each in ("red", "blue", "green")]
NOTE = "I believe that refunds take three days for members."


def priced(*passages, form="{} Price: {} EUR", between="\n\n"):
    return between.join(form.format(p.text, at) for at, p in enumerate(passages, 40))


def around(said, *passages, run=None, question=QUESTION):
    found = (
        (run or Run()).retrieve(*passages).ask(user(question), tool(said)).find(ANSWER, question)
    )
    return [(p.id, p.text) for p in found.passages]


def test_what_is_no_evidence_is_none_beside_a_document_either():
    own = [(REFUNDS.id, REFUNDS.text)]
    # An agent as a tool that quotes what it read, whole and cut, and one that names it below.
    quoting = f"{NOTE} Quote: {REFUNDS.text} Gifts within 9 hours."
    listing = f"{NOTE}\n\nSources:\n{REFUNDS.text}"
    for reply, told in ((quoting, quoting), (quoting, quoting[:-3]), (NOTE, listing)):
        run = Run().ask(prompt(REFUNDS), reply=reply)
        assert around(told, REFUNDS, run=run) == own
    # The question and a model's query, repeated among other words.
    asked = "Do refunds take three days for members?"
    found = around(f"Of our 1500 articles, for '{asked}':\n{REFUNDS.text}", REFUNDS, question=asked)
    assert "three" not in found[0][1]
    run = Run().ask(user(QUESTION), reply="", also=[NOTE])
    found = around(f"Of our 1500 articles of 2026 for {NOTE}:\n{REFUNDS.text}", REFUNDS, run=run)
    assert "three" not in found[0][1]
    # A conversation that a step wrote out together with what was found.
    run = Run().retrieve(REFUNDS)
    run.log.text_passed("step", f"User: Hi\nAssistant: {NOTE}", "chat_history")
    both = f"User: Hi\nAssistant: {NOTE}\n\n{REFUNDS.text}"
    run.log.text_passed("step", both, "material")
    assert run.ask(user(f"Answer by this. {both} {QUESTION}")).context() == [REFUNDS]


def test_a_document_is_shown_once_however_often_it_stands_there():
    red, blue, green = LAMPS
    run = Run().retrieve(*LAMPS)
    run.ask(user(QUESTION), tool(priced(red, blue)), tool(priced(blue, green)))
    assert [p.id for p in run.context()] == ["red", "blue", "green"]
    twice = f"{priced(red, blue)}\n\nAgain:\n\n{priced(blue, green)}"
    assert [own for own, _ in around(twice, *LAMPS)] == ["red", "blue", "green"]
    parent = Passage(f"{REFUNDS.text} {CARDS.text}", "p")
    run = Run().retrieve(REFUNDS, parent).ask(user(QUESTION), tool(parent.text), tool(REFUNDS.text))
    assert run.context() == [parent, REFUNDS]


@pytest.mark.parametrize(
    "form",
    ["{}\nPrice: {} EUR", "| {} | {} EUR |", "Price: {1} EUR\n{0}", '{{"text": "{}", "eur": {}}}'],
)
def test_what_stands_next_to_a_document_is_evidence_in_its_place(form):
    red, blue = LAMPS[:2]
    said = "Here are the 2 lamps:\n" + priced(red, blue, form=form, between="\n")
    found = Run().retrieve(red, blue).ask(user(QUESTION), tool(said)).find()
    assert (found.passages, found.prompt) == ([red, blue], said)


def test_a_document_keeps_its_letters_where_a_tool_escapes_them():
    first, last = Passage('One "line".\nZwölf Äpfel und 😀 dazu.', "1"), LAMPS[0]
    said = json.dumps([{"text": p.text, "price": f"{at} €"} for at, p in enumerate((first, last))])
    found = Run().retrieve(first, last).ask(user(QUESTION), tool(said)).find()
    assert found.passages == [first, last]
    assert f'"{first.text}", "price": "0 €"' in found.prompt
    for odd in ("Fish &amp; chips are sold here.", "İstanbul is where refunds are paid."):
        first = Passage(odd, "1")
        assert [own for own, _ in around(priced(first, last), first, last)] == ["1", "red"]


def test_a_drafts_words_are_cut_out_piece_by_piece():
    note = "Refunds take nine days for members, as far as I can tell from here."
    run = Run().ask(prompt(CARDS), reply=note)
    for said, left in (
        (json.dumps({"answer": note, "sources": ["Bring the parcel's number."]}), "Bring the"),
        (f"The expert says: {note} It was asked on 3 May.", "asked on 3 May"),
        (f"{note[:38]} ... Asked on 3 May.", "Asked on 3 May"),
    ):
        found = run.ask(user(QUESTION), tool(said)).find()
        assert "nine days" not in found.prompt + "".join(p.text for p in found.passages)
        assert "nine days" in "".join(found.cut)
        assert left in found.prompt


@pytest.mark.parametrize(
    "result",
    [
        "Plan of 2 steps saved:\n1. give notice by March\n2. rent a van",
        "<ol><li>Give notice by March</li><li>Rent a van</li></ol>",
        '{"saved": true, "n": 2, "first": "give notice by March"}',
    ],
)
def test_what_a_tool_gives_back_of_its_arguments_is_no_evidence(result):
    run = Run().ask(user("Plan."), reply="", also=["give notice by March", "rent a van"])
    run.tool(result).ask(user(QUESTION), tool(result), tool(REFUNDS.text))
    assert "notice" not in "".join([*(each.text for each in run.context()), run.find().prompt])


@pytest.mark.parametrize(
    "passed_on",
    ["Notes: It has swans. Camp there.", "- It has swans", "Lake Ula is deep and gre..."],
)
def test_a_short_sentence_or_the_beginning_of_a_reply_is_no_evidence(passed_on):
    draft = "Lake Ula is deep and green all year. It has swans. Camp there."
    run = Run().ask(prompt(REFUNDS), reply=draft)
    run.ask(user(f"{REFUNDS.text}\n\n{passed_on}\n\n{QUESTION}"))
    shown = run.find().prompt
    assert "swans" not in shown
    assert "Ula" not in shown


def test_a_short_sentence_that_a_model_copied_is_evidence():
    run = Run().ask(
        user("Sum up: The pond is old. It has swans."), reply="A pond. It has swans. Old."
    )
    run.ask(user(f"The pond is old. It has swans.\n\n{QUESTION}"))
    assert "It has swans." in run.find().prompt


def test_a_tool_that_finds_words_of_its_arguments_is_evidence():
    found = "The van of Graz can be rented on Monday."
    run = Run().ask(user("Plan."), reply="", also=["rent a van in Graz on Monday"])
    run.tool(found).ask(user(QUESTION), tool(found))
    assert run.context() == [Passage(found)]


def test_a_fact_found_later_is_evidence_though_an_earlier_plan_has_its_words():
    plan = "Find out whether the lamp needs 230 volts or 110 volts, and where the lamp is sold."
    run = Run().ask(user(QUESTION), reply="", also=[plan]).tool("Noted.")
    run.ask(user(QUESTION), tool("Noted."), reply="", also=["lamp voltage"])
    run.tool(fact := "The lamp needs 110 volts.").ask(user(QUESTION), tool("Noted."), tool(fact))
    assert Passage(fact) in run.context()


def test_a_file_that_the_model_wrote_and_reads_back_is_none():
    written = "The Aurora weighs 410 g\nThe Vega weighs 300 g"
    run = Run().ask(user(QUESTION), reply="", also=[written]).tool("Saved.")
    run.ask(user(QUESTION), tool("Saved."), reply="", also=["notes.txt"])
    run.tool(read := "1\tThe Aurora weighs 410 g\n2\tThe Vega weighs 300 g")
    assert run.ask(user(QUESTION), tool(read)).context() == []


def test_what_a_tool_said_stays_evidence_where_a_model_hands_it_to_the_next():
    # A loop of the application's own: its tools are seen in the prompts only.
    run = Run().ask(user(QUESTION), reply="", also=["refunds"])
    run.ask(user(QUESTION), tool(REFUNDS.text), reply="", also=[REFUNDS.text])
    run.ask(user(QUESTION), tool(REFUNDS.text), tool("Die Erstattung dauert fünf Tage."))
    texts = [passage.text for passage in run.context()]
    assert texts == [REFUNDS.text, "Die Erstattung dauert fünf Tage."]


@pytest.mark.parametrize("blank", ["\n ", " \n", "\t"])
def test_a_page_of_blank_lines_around_documents_is_read_in_time(blank):
    begun = time.process_time()
    assert len(around((blank * 20_000).join([REFUNDS.text, CARDS.text, ""]), REFUNDS, CARDS)) == 2
    assert time.process_time() - begun < 5.0


def test_a_conversation_of_very_many_lines_is_read_in_moments():
    text = MarkedText("AI: yes\n" * 20_000)
    began = time.process_time()
    assert len(mark_transcript(text, is_sure=False)) == 20_000
    assert time.process_time() - began < 5  # it took eleven
