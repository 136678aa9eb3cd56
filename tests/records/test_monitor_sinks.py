import pytest

from ragaliq import ConfigurationError, Monitor, SinkError
from ragaliq.records.store import read_records
from ragaliq.testing import ScriptedJudge


@pytest.fixture
def monitor_of():
    monitors = []

    def build(*sinks, **options):
        monitors.append(Monitor(judge=ScriptedJudge(), sinks=sinks, **options))
        return monitors[-1]

    yield build
    for monitor in monitors:
        monitor.close(0.0)


def test_live_results_are_stored(monitor_of, case, tmp_path):
    monitor = monitor_of(f"sqlite:///{tmp_path}/live.db")
    assert monitor.submit(case, pipeline="zoo", run_id="run-7")
    assert monitor.flush(10.0)
    (record,) = read_records(tmp_path / "live.db")
    assert (record.run.run_id, record.run.pipeline, record.case_id) == ("run-7", "zoo", "case-1")
    assert list(record.results) == ["faithfulness", "relevance"]
    assert record.case is None
    assert record.lag >= 0
    assert monitor.stats().sinks["sqlite"].written == 1


def test_a_flush_leaves_everything_in_the_store_s_one_file(monitor_of, case, tmp_path):
    # Servers end by a signal after it: there is no close, and the file may be copied alone.
    monitor = monitor_of(f"sqlite:///{tmp_path}/live.db")
    left_open = monitor.begin("hung up")
    for number in range(2):
        monitor.submit(case, run_id=f"run-{number}")
        assert monitor.flush(10.0)
        copied = tmp_path / f"copied-{number}.db"
        copied.write_bytes((tmp_path / "live.db").read_bytes())
        assert len(list(read_records(copied))) == number + 1
    assert left_open is not None
    assert monitor.stats().pending == 1


def test_each_sink_has_its_own_counts_and_a_failing_one_is_not_felt(
    monitor_of, case, list_sink, tmp_path
):
    bad = list_sink(*[SinkError("no", kind="unauthorized", permanent=True)] * 3, name="bad")
    good, same_name = list_sink(name="good"), list_sink(name="good")
    monitor = monitor_of(bad, good, same_name)
    for _ in range(3):
        monitor.submit(case)
        assert monitor.flush(10.0)
    stats = monitor.stats()
    assert stats.outcomes == {"evaluated": 3}
    assert {name: sink.written for name, sink in stats.sinks.items()} == {
        "bad": 0,
        "good": 3,
        "good-2": 3,
    }
    assert stats.sinks["bad"].errors == {"unauthorized": 3}


@pytest.mark.parametrize("sinks", ["x.db", ["x.db"], [object()], [dict], ["ftp:///x"]])
def test_what_is_no_sink_is_refused_when_the_monitor_is_made(sinks):
    with pytest.raises(ConfigurationError, match="sink"):
        Monitor(sinks=sinks)


def test_one_name_or_address_stands_for_itself_alone(tmp_path, case):
    monitor = Monitor(
        judge=ScriptedJudge(), sinks=f"sqlite:///{tmp_path}/live.db", metrics="relevance"
    )
    monitor.submit(case)
    assert monitor.close(10.0)
    (record,) = read_records(tmp_path / "live.db")
    assert list(record.results) == ["relevance"]


def test_one_sink_cannot_be_given_twice(list_sink):
    sink = list_sink()
    with pytest.raises(ConfigurationError, match="twice"):
        Monitor(sinks=[sink, sink])
