"""Twenty conversations, as data, each with what the claims of its last answer rest on.

Every door reads the same table: files, LangChain's memory and checkpoints, LlamaIndex's chat
engines, spans. A message is a text; an assistant's comes with the chunks it was made from.
"""

from __future__ import annotations

from typing import NamedTuple

TURN, EARLIER, USER, NONE = "turn", "earlier_turn", "user", None


class Exchange(NamedTuple):
    """A question, the chunks that were retrieved for it, and the answer."""

    question: str
    chunks: tuple[str, ...]
    answer: str


class Conversation(NamedTuple):
    """The exchanges of a conversation and, by claim, what those of its last answer rest on."""

    name: str
    exchanges: tuple[Exchange, ...]
    expected: dict[str, str | None]


REFUNDS = "Refunds are paid within five days of the return."
CHILDREN = "Children under twelve pay half the price of an adult ticket."
NORWAY = "Parcels to Norway take eight days and cost twelve euros."
WARRANTY = "The warranty of the coffee machine covers three years."
OPENING = "The museum opens at nine on weekdays and at eleven on Sundays."
STUDENTS = "Students get a discount of twenty percent with a valid card."
DOGS = "Dogs are welcome in the garden but not in the gallery."
NEW_REFUNDS = "Since May refunds are paid within three days of the return."


CONVERSATIONS = (
    Conversation(
        "a pronoun whose answer is in this turn's chunk",
        (
            Exchange("How long do refunds take?", (REFUNDS,), "Refunds are paid within five days."),
            Exchange(
                "And do children pay less?",
                (CHILDREN,),
                "Children under twelve pay half the price.",
            ),
        ),
        {"Children under twelve pay half the price.": TURN},
    ),
    Conversation(
        "an earlier document that was not retrieved again",
        (
            Exchange("How long do refunds take?", (REFUNDS,), "Refunds are paid within five days."),
            Exchange(
                "Say that again, please.",
                (CHILDREN,),
                "Refunds are paid within five days of the return.",
            ),
        ),
        {"Refunds are paid within five days of the return.": EARLIER},
    ),
    Conversation(
        "both turns' documents in one answer",
        (
            Exchange(
                "When does the museum open?", (OPENING,), "The museum opens at nine on weekdays."
            ),
            Exchange(
                "May I bring a dog then?",
                (DOGS,),
                "Dogs are welcome in the garden. The museum opens at nine on weekdays.",
            ),
        ),
        {"Dogs are welcome in the garden.": TURN, "The museum opens at nine on weekdays.": EARLIER},
    ),
    Conversation(
        "what the user said in an earlier turn",
        (
            Exchange(
                "I live in Norway. How long do refunds take?",
                (REFUNDS,),
                "Refunds are paid within five days.",
            ),
            Exchange(
                "And how long does a parcel take?",
                (NORWAY,),
                "You live in Norway. Parcels to Norway take eight days.",
            ),
        ),
        {"You live in Norway.": USER, "Parcels to Norway take eight days.": TURN},
    ),
    Conversation(
        "what the user says before asking, in the same sentence",
        (
            Exchange(
                "Hello, when does the museum open?",
                (OPENING,),
                "The museum opens at nine on weekdays.",
            ),
            Exchange(
                "I study medicine in Bergen, do I get a discount?",
                (STUDENTS,),
                "You study medicine in Bergen. Students get a discount of twenty percent.",
            ),
        ),
        {"You study medicine in Bergen.": USER, "Students get a discount of twenty percent.": TURN},
    ),
    Conversation(
        "a question states nothing",
        (
            Exchange("Does the warranty cover thirty years?", (REFUNDS,), "I cannot tell."),
            Exchange("So what about it?", (CHILDREN,), "The warranty covers thirty years."),
        ),
        {"The warranty covers thirty years.": NONE},
    ),
    Conversation(
        "an earlier hallucination repeated",
        (
            Exchange("Is there parking?", (OPENING,), "Parking is free for all visitors."),
            Exchange("Are you sure?", (DOGS,), "Parking is free for all visitors."),
        ),
        {"Parking is free for all visitors.": NONE},
    ),
    Conversation(
        "an earlier hallucination that the user repeats",
        (
            Exchange("Is there parking?", (OPENING,), "Parking is free for all visitors."),
            Exchange(
                "So parking is free for all visitors. And dogs?",
                (DOGS,),
                "Parking is free for all visitors.",
            ),
        ),
        {"Parking is free for all visitors.": NONE},
    ),
    Conversation(
        "an earlier hallucination beside what the user said first",
        (
            Exchange(
                "My machine is from Italy. Is it covered?",
                (WARRANTY,),
                "Your machine is from Italy.",
            ),
            Exchange("How long?", (WARRANTY,), "Your machine is from Italy."),
        ),
        {"Your machine is from Italy.": USER},
    ),
    Conversation(
        "a correction: the later word counts",
        (
            Exchange(
                "I bought two tickets. Do children pay?",
                (CHILDREN,),
                "Children under twelve pay half.",
            ),
            Exchange(
                "Sorry, I bought seven tickets. And dogs?", (DOGS,), "You bought seven tickets."
            ),
        ),
        {"You bought seven tickets.": USER},
    ),
    Conversation(
        "a correction that the answer ignores",
        (
            Exchange(
                "I bought two tickets. Do children pay?",
                (CHILDREN,),
                "Children under twelve pay half.",
            ),
            Exchange(
                "Sorry, I bought seven tickets. And dogs?", (DOGS,), "You bought two tickets."
            ),
        ),
        {"You bought two tickets.": NONE},
    ),
    Conversation(
        "this turn's document goes before an earlier one that says otherwise",
        (
            Exchange("How long do refunds take?", (REFUNDS,), "Refunds are paid within five days."),
            Exchange("Still?", (NEW_REFUNDS,), "Refunds are paid within three days of the return."),
        ),
        {"Refunds are paid within three days of the return.": TURN},
    ),
    Conversation(
        "this turn's document contradicts what an earlier one supports",
        (
            Exchange("How long do refunds take?", (REFUNDS,), "Refunds are paid within five days."),
            Exchange("Still?", (NEW_REFUNDS,), "Refunds are paid within five days of the return."),
        ),
        {"Refunds are paid within five days of the return.": TURN},
    ),
    Conversation(
        "an earlier document contradicts the answer",
        (
            Exchange("How long is the warranty?", (WARRANTY,), "The warranty covers three years."),
            Exchange("And dogs?", (DOGS,), "The warranty of the coffee machine covers nine years."),
        ),
        {"The warranty of the coffee machine covers nine years.": EARLIER},
    ),
    Conversation(
        "nothing was retrieved in this turn",
        (
            Exchange(
                "Do students pay less?", (STUDENTS,), "Students get a discount of twenty percent."
            ),
            Exchange("How much was it?", (), "Students get a discount of twenty percent."),
        ),
        {"Students get a discount of twenty percent.": EARLIER},
    ),
    Conversation(
        "a document of two turns ago",
        (
            Exchange("How long do refunds take?", (REFUNDS,), "Refunds are paid within five days."),
            Exchange("Do children pay?", (CHILDREN,), "Children under twelve pay half the price."),
            Exchange(
                "And the first thing?", (DOGS,), "Refunds are paid within five days of the return."
            ),
        ),
        {"Refunds are paid within five days of the return.": EARLIER},
    ),
    Conversation(
        "a user fact of three turns ago",
        (
            Exchange(
                "My daughter visits Hamburg. Do children pay?",
                (CHILDREN,),
                "Children under twelve pay half.",
            ),
            Exchange("When do you open?", (OPENING,), "The museum opens at nine on weekdays."),
            Exchange("And dogs?", (DOGS,), "Dogs are welcome in the garden."),
            Exchange("Who was it for again?", (STUDENTS,), "Your daughter visits Hamburg."),
        ),
        {"Your daughter visits Hamburg.": USER},
    ),
    Conversation(
        "the same chunk retrieved again is this turn's",
        (
            Exchange("How long do refunds take?", (REFUNDS,), "Refunds are paid within five days."),
            Exchange(
                "And how long exactly?",
                (REFUNDS,),
                "Refunds are paid within five days of the return.",
            ),
        ),
        {"Refunds are paid within five days of the return.": TURN},
    ),
    Conversation(
        "something that nobody said and nothing shows",
        (
            Exchange("How long do refunds take?", (REFUNDS,), "Refunds are paid within five days."),
            Exchange("And dogs?", (DOGS,), "Elephants receive complimentary sandwiches."),
        ),
        {"Elephants receive complimentary sandwiches.": NONE},
    ),
    Conversation(
        "all three sources in one answer",
        (
            Exchange(
                "I live in Norway. How long do refunds take?",
                (REFUNDS,),
                "Refunds are paid within five days.",
            ),
            Exchange(
                "And parcels?",
                (NORWAY,),
                "Parcels to Norway take eight days. Refunds are paid within five days. "
                "You live in Norway.",
            ),
        ),
        {
            "Parcels to Norway take eight days.": TURN,
            "Refunds are paid within five days.": EARLIER,
            "You live in Norway.": USER,
        },
    ),
)
