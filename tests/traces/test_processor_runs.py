"""Which spans the processor takes for a run, and what it makes of the others."""

import threading
from contextlib import contextmanager

import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Decision, Sampler, SamplingResult
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from spans import ANSWER, QUESTION, TEXTS, Spans

from ragaliq import suppress


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
        app.answer()
    assert len(processed.cases()) == 1
    assert processed.monitor.stats().started == 1


def test_a_lone_model_is_counted_as_no_rag(app, processed):
    with app.request():
        app.answer()
    assert processed.cases() == []
    assert processed.monitor.stats().outcomes == {"not_rag": 1}


def test_a_hand_written_chain_that_says_what_it_is_later_is_known_the_second_time(processed):
    app = Spans(processed.app.provider, late=True)
    app.chain()
    assert processed.cases() == []
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
        lambda app: attached(SWITCHED_OFF),
        lambda app: app.span("score", kind="EVALUATOR"),
    ],
    ids=["suppressed", "instrumentation is switched off", "an evaluation"],
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


def test_what_a_draft_says_is_what_the_monitor_gets(app, processed):
    app.chain(session="s1")
    assert processed.cases()
    (result,) = processed.results
    assert result.run.session_id == "s1"
    assert result.run.ended_at == pytest.approx(app.ended_at, abs=0.001)
