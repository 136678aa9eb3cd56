"""Spool: what is noted as settled stays so, whenever the process is killed."""

import pytest

from ragaliq.collect.requests import Request
from ragaliq.collect.spool import Spool
from ragaliq.errors import ConfigurationError

ONE, TWO, THREE = "1" * 32, "2" * 32, "3" * 32


@pytest.fixture
def spools(tmp_path):
    """Function that makes the next process's spool, after the one before was killed."""
    made = []

    def start(**options):
        if made:
            made[-1].close()
        made.append(Spool(tmp_path, **options))
        return made[-1]

    yield start
    made[-1].close()


def request(*names):
    return Request("traces", False, False, " ".join(names).encode())


def replayed(spool):
    """The traces of each request that are not settled, which are read again."""
    left = []
    for each, settled, keep in spool.replay():
        open_ = set(each.body.decode().split()) - settled
        keep(open_)
        left.append(open_)
    return left


def test_another_process_may_not_use_the_folder_at_the_same_time(spools, tmp_path):
    spools()
    with pytest.raises(ConfigurationError, match="another process uses it"):
        Spool(tmp_path)
    spools()  # the first one is dead


@pytest.mark.parametrize("torn", [b"\n2222", b"\n\xff\xfe"])
def test_a_note_that_was_cut_short_does_not_spoil_the_next_one(spools, tmp_path, torn):
    first = spools()
    first.append(request(ONE, TWO, THREE), {ONE, TWO, THREE})
    first.settled(ONE)
    (done,) = tmp_path.glob("*.done")
    done.write_bytes(done.read_bytes() + torn)
    second = spools()
    assert replayed(second) == [{TWO, THREE}]
    second.settled(THREE)
    third = spools()
    assert replayed(third) == [{TWO}]
    third.settled(TWO)
    assert replayed(spools()) == []


def test_a_trace_in_two_segments_is_settled_in_both_though_only_one_was_noted(spools, tmp_path):
    now = [0.0]
    first = spools(clock=lambda: now[0])
    first.append(request(ONE, TWO), {ONE, TWO})
    now[0] = 100.0
    first.append(request(ONE), {ONE})
    first.settled(ONE)
    noted = sorted(tmp_path.glob("*.done"))
    assert len(noted) == 2
    noted[1].unlink()  # as where it was killed before the second note
    assert replayed(spools()) == [{TWO}, set()]


def test_no_segment_is_deleted_before_a_trace_is_noted_in_all_of_its_segments(
    spools, tmp_path, monkeypatch
):
    now = [0.0]
    spool = spools(clock=lambda: now[0])
    spool.append(request(ONE), {ONE})
    now[0] = 100.0
    spool.append(request(ONE, TWO), {ONE, TWO})
    noted_at_first = []
    delete = type(tmp_path).unlink
    monkeypatch.setattr(
        type(tmp_path),
        "unlink",
        lambda path, **options: (
            noted_at_first.append(len([*tmp_path.glob("*.done")])) or delete(path, **options)
        ),
    )
    spool.settled(ONE)
    assert noted_at_first[0] == 2


def test_notes_whose_segment_is_gone_settle_nothing_of_the_next_segment(spools, tmp_path):
    (tmp_path / f"{1:020d}.done").write_text(f"\n{ONE}")  # killed as it deleted both
    first = spools()
    assert replayed(first) == []
    first.append(request(ONE), {ONE})
    assert replayed(spools()) == [{ONE}]
