"""A window never counts too little, and says when there is room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragaliq.scoring.limits.windows import SLOTS, Window

LIMIT, LENGTH = 100, 60.0

STEPS = st.lists(
    st.tuples(st.floats(0, 20), st.integers(1, 60), st.floats(0, 1)), min_size=1, max_size=60
)


@given(STEPS)
def test_no_stretch_of_its_length_holds_more_than_the_limit(steps):
    window, now, taken = Window(LIMIT, LENGTH), 1000.0, []
    for seconds, amount, given_back in steps:
        now += seconds
        if window.wait(amount, now) == 0:
            window.spend(amount, now)
            taken.append([now, amount])
        elif taken:
            at, before = taken[-1]
            back = min(before, int(amount * given_back))
            window.spend(-back, at)
            if window.slot(at) + LENGTH > now:
                taken[-1][1] -= back
        assert sum(spent for at, spent in taken if at > now - LENGTH) <= LIMIT


@given(STEPS)
def test_when_it_says_there_will_be_room_there_is(steps):
    window, now = Window(LIMIT, LENGTH), 1000.0
    for seconds, amount, _ in steps:
        now += seconds
        if (wait := window.wait(amount, now)) > 0:
            assert wait <= LENGTH * (1 + 1 / SLOTS) + 0.001
            now += wait + 1e-6
            assert window.wait(amount, now) == 0
        window.spend(amount, now)


def test_more_than_was_counted_cannot_be_given_back():
    window = Window(LIMIT, LENGTH)
    window.spend(30, 1000.0)
    window.spend(-50, 1000.0)
    window.spend(-50, 1030.0)
    assert window.spent == 0


def test_nothing_costs_nothing_even_when_the_limit_is_exceeded():
    window = Window(LIMIT, LENGTH)
    window.spend(500, 1000.0)
    assert window.wait(0, 1000.0) == 0
    assert window.wait(1, 1000.0) > 0
