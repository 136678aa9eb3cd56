"""Line 17: runs that all end without a score are named once; the pins meet LangGraph's server."""

from pathlib import Path

from langchain_core.output_parsers import StrOutputParser
from langchain_parts import ANSWER, model
from rag_parts import QUESTION

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import Monitor
from ragaliq.testing import ScriptedJudge
from run_logs import ended_run


def test_runs_that_all_end_without_a_score_are_named_once(caplog):
    monitor = Monitor(judge=ScriptedJudge(), metrics=["faithfulness"])
    config = {"callbacks": [RagaliqCallbackHandler(monitor)]}
    for _ in range(30):
        model().with_config(run_name="chat").pipe(StrOutputParser()).invoke(QUESTION, config)
    assert monitor.close(30)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("of the first runs none was scored (20 no_context)")


def test_so_are_runs_that_all_fail_inside(caplog):
    monitor = Monitor(judge=ScriptedJudge(), metrics=["faithfulness"])
    for number in range(30):
        assert monitor.submit(ended_run(QUESTION, [], ANSWER, tags=[3]), run_id=str(number))
    assert monitor.close(30)
    _, said = [record.getMessage() for record in caplog.records]
    assert said.startswith("of the first runs none was scored (20 internal_error)")


def test_the_pins_hold_langgraph_and_its_server():
    pins = (Path(__file__).parents[2] / "constraints.txt").read_text().splitlines()
    assert {"langgraph", "langgraph-cli"} <= {pin.partition("==")[0] for pin in pins}
