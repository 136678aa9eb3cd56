"""Twenty conversations, as data, each with what the claims of its last answer rest on.

Every door reads the same table: files, LangChain's memory and checkpoints, LlamaIndex's chat
engines, spans.
"""

import re
from typing import NamedTuple


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


CHUNKS = {
    "REFUNDS": "Refunds are paid within five days of the return.",
    "CHILDREN": "Children under twelve pay half the price of an adult ticket.",
    "NORWAY": "Parcels to Norway take eight days and cost twelve euros.",
    "WARRANTY": "The warranty of the coffee machine covers three years.",
    "OPENING": "The museum opens at nine on weekdays and at eleven on Sundays.",
    "STUDENTS": "Students get a discount of twenty percent with a valid card.",
    "DOGS": "Dogs are welcome in the garden but not in the gallery.",
    "NEW_REFUNDS": "Since May refunds are paid within three days of the return.",
}
# A name; for each exchange the question, the chunks and the answer; then what each claim rests on.
TABLE = """
a pronoun whose answer is in this turn's chunk:
  How long do refunds take? [REFUNDS] Refunds are paid within five days.
  And do children pay less? [CHILDREN] Children under twelve pay half the price.
  turn: Children under twelve pay half the price.
an earlier document that was not retrieved again:
  How long do refunds take? [REFUNDS] Refunds are paid within five days.
  Say that again, please. [CHILDREN] Refunds are paid within five days of the return.
  earlier_turn: Refunds are paid within five days of the return.
both turns' documents in one answer:
  When does the museum open? [OPENING] The museum opens at nine on weekdays.
  May I bring a dog then? [DOGS]
    Dogs are welcome in the garden. The museum opens at nine on weekdays.
  turn: Dogs are welcome in the garden.
  earlier_turn: The museum opens at nine on weekdays.
what the user said in an earlier turn:
  I live in Norway. How long do refunds take? [REFUNDS] Refunds are paid within five days.
  And how long does a parcel take? [NORWAY] You live in Norway. Parcels to Norway take eight days.
  user: You live in Norway.
  turn: Parcels to Norway take eight days.
what the user says before asking, in the same sentence:
  Hello, when does the museum open? [OPENING] The museum opens at nine on weekdays.
  I study medicine in Bergen, do I get a discount? [STUDENTS]
    You study medicine in Bergen. Students get a discount of twenty percent.
  user: You study medicine in Bergen.
  turn: Students get a discount of twenty percent.
a question states nothing:
  Does the warranty cover thirty years? [REFUNDS] I cannot tell.
  So what about it? [CHILDREN] The warranty covers thirty years.
  nothing: The warranty covers thirty years.
an earlier hallucination repeated:
  Is there parking? [OPENING] Parking is free for all visitors.
  Are you sure? [DOGS] Parking is free for all visitors.
  nothing: Parking is free for all visitors.
an earlier hallucination that the user repeats:
  Is there parking? [OPENING] Parking is free for all visitors.
  So parking is free for all visitors. And dogs? [DOGS] Parking is free for all visitors.
  nothing: Parking is free for all visitors.
an earlier hallucination beside what the user said first:
  My machine is from Italy. Is it covered? [WARRANTY] Your machine is from Italy.
  How long? [WARRANTY] Your machine is from Italy.
  user: Your machine is from Italy.
a correction: the later word counts:
  I bought two tickets. Do children pay? [CHILDREN] Children under twelve pay half.
  Sorry, I bought seven tickets. And dogs? [DOGS] You bought seven tickets.
  user: You bought seven tickets.
a correction that the answer ignores:
  I bought two tickets. Do children pay? [CHILDREN] Children under twelve pay half.
  Sorry, I bought seven tickets. And dogs? [DOGS] You bought two tickets.
  nothing: You bought two tickets.
this turn's document goes before an earlier one that says otherwise:
  How long do refunds take? [REFUNDS] Refunds are paid within five days.
  Still? [NEW_REFUNDS] Refunds are paid within three days of the return.
  turn: Refunds are paid within three days of the return.
this turn's document contradicts what an earlier one supports:
  How long do refunds take? [REFUNDS] Refunds are paid within five days.
  Still? [NEW_REFUNDS] Refunds are paid within five days of the return.
  turn: Refunds are paid within five days of the return.
an earlier document contradicts the answer:
  How long is the warranty? [WARRANTY] The warranty covers three years.
  And dogs? [DOGS] The warranty of the coffee machine covers nine years.
  earlier_turn: The warranty of the coffee machine covers nine years.
nothing was retrieved in this turn:
  Do students pay less? [STUDENTS] Students get a discount of twenty percent.
  How much was it? [] Students get a discount of twenty percent.
  earlier_turn: Students get a discount of twenty percent.
a document of two turns ago:
  How long do refunds take? [REFUNDS] Refunds are paid within five days.
  Do children pay? [CHILDREN] Children under twelve pay half the price.
  And the first thing? [DOGS] Refunds are paid within five days of the return.
  earlier_turn: Refunds are paid within five days of the return.
a user fact of three turns ago:
  My daughter visits Hamburg. Do children pay? [CHILDREN] Children under twelve pay half.
  When do you open? [OPENING] The museum opens at nine on weekdays.
  And dogs? [DOGS] Dogs are welcome in the garden.
  Who was it for again? [STUDENTS] Your daughter visits Hamburg.
  user: Your daughter visits Hamburg.
the same chunk retrieved again is this turn's:
  How long do refunds take? [REFUNDS] Refunds are paid within five days.
  And how long exactly? [REFUNDS] Refunds are paid within five days of the return.
  turn: Refunds are paid within five days of the return.
something that nobody said and nothing shows:
  How long do refunds take? [REFUNDS] Refunds are paid within five days.
  And dogs? [DOGS] Elephants receive complimentary sandwiches.
  nothing: Elephants receive complimentary sandwiches.
all three sources in one answer:
  I live in Norway. How long do refunds take? [REFUNDS] Refunds are paid within five days.
  And parcels? [NORWAY]
    Parcels to Norway take eight days. Refunds are paid within five days. You live in Norway.
  turn: Parcels to Norway take eight days.
  earlier_turn: Refunds are paid within five days.
  user: You live in Norway.
"""


def conversation(name, lines):
    exchanges = re.findall(r"^  (.+) \[(.*)\]\s+(.+)$", lines, re.MULTILINE)
    rests_on = re.findall(r"^  (turn|earlier_turn|user|nothing): (.+)$", lines, re.MULTILINE)
    return Conversation(
        name,
        tuple(Exchange(q, tuple(CHUNKS[n] for n in names.split()), a) for q, names, a in exchanges),
        {claim: None if source == "nothing" else source for source, claim in rests_on},
    )


CONVERSATIONS = tuple(
    conversation(*each) for each in re.findall(r"^(\w.*):\n((?:  .+\n)+)", TABLE, re.MULTILINE)
)
