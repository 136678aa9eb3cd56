"""Values of the application's own classes are read without their methods; of many, a part."""

import itertools
from collections.abc import Mapping

import pytest

from ragaliq.capture import Reader, plain, text_blocks, texts_in

TEXT = "Refunds take five days."
METHODS = (
    "__len__ __iter__ __getitem__ __eq__ __bool__ __str__ __repr__ __contains__ __add__ __format__ "
    "get items keys values strip split startswith lower copy union"
).split()
HELD = {
    "str": TEXT,
    "dict": {"answer": TEXT, "question": TEXT, "context": [TEXT], "page_content": TEXT},
    "list": [{"role": "user", "content": TEXT}, {"role": "assistant", "content": TEXT}],
    "tuple": ("user", TEXT),
    "set": {TEXT},
    "frozenset": frozenset({TEXT}),
}


def unreadable(value):
    """The value, of a class whose methods all fail."""

    def fail(self, *args):
        raise AssertionError("the application's code was run")

    base = type(value)
    hashing = {"__hash__": base.__hash__}
    return type("Own", (base,), {**dict.fromkeys(METHODS, fail), **hashing})(value)


class Endless(Mapping):
    """A mapping of the application's own, without an end."""

    def __getitem__(self, key):
        raise KeyError(key)

    def __iter__(self):
        return map(str, itertools.count())

    def __len__(self):
        return 10**9

    def items(self):
        return ((key, {"text": TEXT}) for key in self)

    def values(self):
        return itertools.repeat({"text": TEXT})


def read(value):
    """Result of every reader of texts and documents for a value."""
    reader = Reader()
    return [
        reader.answer(value),
        reader.answer_text(value),
        reader.answer({"answer": value}),
        reader.question(value),
        reader.question({"question": value}),
        reader.question({"wish": value}),
        reader.passages(value),
        reader.passages([value]),
        reader.listed([value]),
        reader.listed(value),
        reader.context({"context": value}),
        reader.document_list(value),
        reader.message(value),
        reader.message({"role": "user", "content": value}),
        reader.earlier(value),
        reader.earlier({"chat_history": value}),
        reader.earlier({"chat_history": [(value, value)]}),
        reader.tool_result(value),
        list(texts_in(value)),
        list(texts_in([value])),
        text_blocks(value),
        text_blocks([value]),
    ]


@pytest.mark.parametrize("name", HELD)
def test_texts_and_containers_are_read_without_the_methods_of_their_classes(name):
    value = HELD[name]
    assert read(unreadable(value)) == read(value)
    assert type(plain(unreadable(value))) in {type(value), set}


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "value",
    [
        Endless(),
        {"answer": Endless()},
        [TEXT] * 10**6,
        {str(number): TEXT for number in range(10**6)},
        {"answer": [[[TEXT] * 100] * 100] * 100},
        [[[{"page_content": 1}] * 100] * 100] * 100,
    ],
    ids=["endless", "endless inside", "list", "dictionary", "nested", "documents"],
)
def test_of_values_without_an_end_a_part_is_looked_at_and_none_is_an_answer(value):
    reader = Reader()
    assert reader.answer(value) is None
    assert reader.question(value) is None
    assert reader.passages(value) == []


def test_an_answer_of_many_parts_is_read_whole():
    assert Reader().answer_text([TEXT] * 1_999).text.count(TEXT) == 1_999
