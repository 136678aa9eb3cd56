"""Which spans the processor takes for a run, what it keeps and for how long."""

import gc
import threading
import weakref
from contextlib import contextmanager

import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Decision, Sampler, SamplingResult
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from spans import ANSWER, QUESTION, TEXTS, Spans

from ragaliq import ConfigurationError, suppress
from ragaliq.testing import ScriptedJudge
from ragaliq.traces import RagaliqSpanProcessor


@pytest.fixture
def processed(following):
    return following()


@pytest.fixture
def app(processed):
    return processed.app


def test_the_outermost_span_of_language_model_work_is_the_run(app, processed):
    with app.request():
        app.chain()
    assert processed.cases()
    (result,) = processed.results
    assert (result.case.query, result.case.response) == (QUESTION, ANSWER)
    assert result.case.context_texts == TEXTS
    assert result.target.span_id == f"{app.last.span_id:016x}"
    assert result.run.pipeline == "rag"


def test_a_chain_in_a_chain_is_the_same_run(app, processed):
    with app.span("outer", kind="CHAIN", asked=QUESTION) as outer:
        app.chain()
        app.say(outer, output=ANSWER)
    assert len(processed.cases()) == 1
    assert processed.monitor.stats().started == 1


def test_chains_of_one_request_are_runs_of_their_own_and_need_not_wait_for_it(app, processed):
    with app.request():
        app.chain()
        assert len(processed.cases()) == 1
        app.chain()
    assert len(processed.cases()) == 2


def test_steps_without_a_chain_are_one_run_of_their_request(app, processed):
    with app.request():
        with app.span("find"):
            app.retrieve()
        app.answer()
        assert processed.cases() == []
    (case,) = processed.cases()
    assert (case.query, case.context_texts, case.response) == (QUESTION, TEXTS, ANSWER)
    assert processed.monitor.stats().outcomes == {"evaluated": 1}


def test_steps_whose_kind_shows_only_at_their_end(processed):
    app = Spans(processed.app.provider, scope="openinference.instrumentation.langchain", late=True)
    with app.request():
        app.retrieve()
        app.answer(shown=TEXTS)
    assert len(processed.cases()) == 1
    assert processed.monitor.stats().started == 1


def test_a_lone_model_is_counted_as_no_rag(app, processed):
    with app.request():
        app.answer()
    assert processed.cases() == []
    assert processed.monitor.stats().outcomes == {"not_rag": 1}


def test_a_hand_written_chain_may_say_only_at_its_end_what_it_is(processed):
    app = Spans(processed.app.provider, late=True)
    app.chain()
    assert len(processed.cases()) == 1
    app.chain()
    assert len(processed.cases()) == 2
    assert processed.monitor.stats().started == 2


def test_a_search_before_a_chain_in_one_request_belongs_to_it(app, processed):
    with app.request():
        app.retrieve()
        with app.span("agent", kind="AGENT", asked=QUESTION) as root:
            app.answer()
            app.say(root, output=ANSWER)
    (case,) = processed.cases()
    assert (case.query, case.context_texts, case.response) == (QUESTION, TEXTS, ANSWER)
    assert processed.monitor.stats().started == 1


def test_a_span_that_was_recorded_is_followed_although_its_sdk_suppressed_others(app, processed):
    with attached(SWITCHED_OFF):
        app.chain()
    assert len(processed.cases()) == 1


def test_a_span_of_the_application_s_own_can_be_named_as_a_run(following):
    each = following(roots=["ask"])
    with each.app.request():
        with each.app.span("ask"):
            each.app.retrieve()
            each.app.answer()
        assert len(each.cases()) == 1


def test_a_remote_parent_changes_nothing(app, processed):
    caller = SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(1))
    with attached(trace.set_span_in_context(NonRecordingSpan(caller))):
        app.chain()
    assert len(processed.cases()) == 1


@contextmanager
def attached(context):
    token = otel_context.attach(context)
    yield
    otel_context.detach(token)


def test_what_is_suppressed_inside_a_run_is_no_part_of_it(app, processed):
    with app.span("rag", kind="CHAIN", asked=QUESTION) as root:
        app.retrieve()
        with suppress():
            app.retrieve(["Not this one."])
        app.say(root, output=ANSWER)
    (case,) = processed.cases()
    assert (case.context_texts, case.response) == (TEXTS, ANSWER)


SWITCHED_OFF = otel_context.set_value(otel_context._SUPPRESS_INSTRUMENTATION_KEY, True)


@pytest.mark.parametrize(
    "around",
    [
        lambda app: suppress(),
        lambda app: app.span("score", kind="EVALUATOR"),
    ],
    ids=["suppressed", "an evaluation"],
)
def test_what_is_nobodys_traffic_is_not_followed(app, processed, around):
    with around(app):
        app.answer()
        app.chain()
    with app.request(), app.span("SELECT"), app.span("embed", kind="EMBEDDING"):
        pass
    dropping = TracerProvider(sampler=ALWAYS_OFF)
    dropping.add_span_processor(processed.processor)
    Spans(dropping).chain()
    assert processed.cases() == []
    assert processed.monitor.stats().started == 0


def test_the_judge_s_own_spans_are_not_followed(app, processed):
    """ragaliq's spans and a judge that makes spans by the convention go to the same provider."""
    before = processed.monitor.judge.extract_claims

    async def traced(response):
        app.chain()
        return await before(response)

    processed.monitor.judge.extract_claims = traced
    app.chain()
    assert len(processed.cases()) == 1
    assert processed.cases() == [processed.results[0].case]
    assert processed.monitor.stats().started == 1


def test_steps_in_other_threads_belong_to_the_run_around_them(app, processed):
    with app.span("rag", kind="CHAIN", asked=QUESTION) as root:
        here = otel_context.get_current()

        def work():
            with attached(here):
                app.retrieve()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        app.say(root, output=ANSWER)
    (case,) = processed.cases()
    assert case.context_texts == TEXTS


class RecordOnly(Sampler):
    def should_sample(self, *given, **named):
        return SamplingResult(Decision.RECORD_ONLY, given[4])

    def get_description(self):
        return "records, and exports nothing"


def test_the_target_of_a_run_whose_spans_are_not_exported_says_so(processed):
    provider = TracerProvider(sampler=RecordOnly())
    provider.add_span_processor(processed.processor)
    Spans(provider).chain()
    assert processed.cases()
    assert not processed.results[0].target.is_sampled


def test_a_late_child_of_a_run_that_is_over_begins_no_new_one(app, processed):
    app.chain()
    here = trace.set_span_in_context(NonRecordingSpan(app.last))
    assert len(processed.cases()) == 1
    with attached(here):
        app.chain()
    assert len(processed.cases()) == 1
    assert processed.monitor.stats().started == 1


def test_what_a_log_says_is_what_the_monitor_gets(app, processed):
    app.chain(session="s1")
    assert processed.cases()
    (result,) = processed.results
    assert result.run.session_id == "s1"
    assert result.run.ended_at == pytest.approx(app.ended_at, abs=0.001)


def kept(processor):
    if not len(processor):
        assert processor._runs.runs == processor._loose == {}
    return len(processor), processor._size


def test_nothing_is_kept_of_a_run_that_is_sampled_out(following):
    each = following(sample_rate=0.0)
    with each.app.span("rag", kind="CHAIN", asked=QUESTION):
        each.app.retrieve()
        assert kept(each.processor) == (1, 0)
    assert kept(each.processor) == (0, 0)
    with each.app.request():
        each.app.retrieve()
        each.app.answer()
    assert kept(each.processor) == (0, 0)
    assert each.monitor.stats().outcomes == {"sampled_out": 2}


def test_the_trace_decides_about_sampling(following):
    """As the handlers do: the same runs everywhere, for all that happens in one trace."""
    half = [following(sample_rate=0.5) for _ in range(2)]
    provider = TracerProvider()
    for each in half:
        provider.add_span_processor(each.processor)
    app = Spans(provider)
    for _ in range(40):
        app.chain()
    first, second = (each.monitor.stats().outcomes["sampled_out"] for each in half)
    assert 0 < first < 40
    assert first == second


@pytest.mark.parametrize(
    ("limit", "steps"), [({"max_traces": 1}, 2), ({"max_spans": 20}, 30), ({"max_bytes": 9000}, 30)]
)
def test_what_is_too_much_is_evicted_and_counted(following, limit, steps):
    each = following(**limit)
    open_ones = [
        each.app.tracer.start_span(f"rag {n}", attributes={"openinference.span.kind": "CHAIN"})
        for n in range(2)
    ]
    with each.app.inside(open_ones[0]):
        for _ in range(steps):
            each.app.retrieve()
    assert each.monitor.stats().incomplete["evicted"] >= 1
    assert kept(each.processor)[1] <= 9000 or limit != {"max_bytes": 9000}
    for span in open_ones:
        span.end()
    assert each.processor.force_flush()
    assert kept(each.processor) == (0, 0)
    assert each.monitor.stats().pending == 0


def test_runs_and_steps_that_never_end_expire(following, until):
    each = following(max_age=0.01)
    each.app.tracer.start_span("rag", attributes={"openinference.span.kind": "CHAIN"})
    until(lambda: each.monitor.stats().incomplete == {"expired": 1})
    assert kept(each.processor) == (0, 0)
    with each.app.request():
        each.app.retrieve()
        until(lambda: each.monitor.stats().incomplete == {"expired": 2})


def test_a_run_is_read_when_its_grace_is_over_without_being_asked(following, until):
    each = following(grace=0.01)
    each.app.chain()
    until(lambda: each.results)
    assert kept(each.processor) == (0, 0)


def test_nothing_of_the_sdk_s_is_held_on_to(following):
    each = following()
    ended = []

    class Watch(type(each.processor).__mro__[1]):
        def on_end(self, span):
            ended.append(weakref.ref(span))

    each.app.provider.add_span_processor(Watch())
    each.app.chain()
    gc.collect()
    assert len(each.processor) == 1
    assert len(ended) == 3
    assert [ref() for ref in ended] == [None] * 3


def test_an_error_of_ours_reaches_nobody_and_is_counted(following):
    each = following()
    begin, each.monitor.begin = each.monitor.begin, None
    each.app.chain()
    assert each.processor.errors > 0
    each.monitor.begin, each.processor.errors = begin, 0


def test_many_threads_at_once_lose_nothing(following):
    each = following(grace=0.001)

    def work():
        for n in range(12):
            with each.app.request():
                if n % 2:
                    each.app.chain()
                else:
                    each.app.retrieve()
                    each.app.answer()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert each.monitor.flush(30)
    assert each.monitor.stats().outcomes == {"evaluated": 96}
    assert each.monitor.stats().started == 96


def units():
    gc.collect()
    return sum(type(held).__name__ == "_SpanRun" for held in gc.get_objects())


def test_nothing_grows_with_the_number_of_runs(following):
    each, before = following(max_traces=10), units()
    for _ in range(40):
        each.app.chain()
        with each.app.request():
            each.app.retrieve()
            each.app.answer()
        if len(each.processor) == 10:
            assert each.processor.force_flush()
    for _ in range(40):
        each.app.tracer.start_span("rag", attributes={"openinference.span.kind": "CHAIN"})
    assert len(each.processor) == 10
    each.processor.shutdown()
    assert kept(each.processor) == (0, 0)
    assert units() == before
    assert each.monitor.stats().outcomes["incomplete_run"] == 40


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"grace": 0}, "grace must be a positive number"),
        ({"max_spans": -1}, "max_spans must be a positive number"),
        ({"roots": "ask"}, "roots must be a list"),
    ],
)
def test_a_wrong_argument_is_named(following, wrong, message):
    with pytest.raises(ConfigurationError, match=message):
        following(**wrong)


def test_something_else_than_a_monitor_is_refused():
    with pytest.raises(ConfigurationError, match="needs a Monitor, got ScriptedJudge"):
        RagaliqSpanProcessor(ScriptedJudge())
