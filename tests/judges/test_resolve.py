"""From what a user writes to the judge."""

import pytest

from ragaliq import (
    CascadeJudge,
    ClaudeJudge,
    ConfigurationError,
    LocalJudge,
    Monitor,
    OpenAICompatibleJudge,
    resolve_judge,
)
from ragaliq.judges.resolve import named_judge
from ragaliq.lab.calibration import fit_calibration


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")


@pytest.mark.parametrize("spec", ["cascade", "local>claude", " local > claude "])
def test_a_cascade_is_named_by_its_judges(spec):
    judge = resolve_judge(spec, model="claude-haiku-4-5")
    assert isinstance(judge, CascadeJudge)
    first, second = judge.stages
    assert isinstance(first, LocalJudge)
    assert isinstance(second, ClaudeJudge)
    assert second.model == "claude-haiku-4-5"


@pytest.mark.parametrize(
    ("spec", "kind", "model"),
    [
        ("claude:claude-haiku-4-5", ClaudeJudge, "claude-haiku-4-5"),
        ("openai:gpt-5-mini", OpenAICompatibleJudge, "gpt-5-mini"),
        ("openai:qwen3:8b", OpenAICompatibleJudge, "qwen3:8b"),
        ("openai-compatible:qwen3:8b", OpenAICompatibleJudge, "qwen3:8b"),
    ],
)
def test_a_name_may_hold_the_model(monkeypatch, spec, kind, model):
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    judge = resolve_judge(spec)
    assert isinstance(judge, kind)
    assert judge.model == model
    assert judge.costs_money
    screened = resolve_judge(f"local>{spec}")
    assert screened.stages[1].model == model
    monkeypatch.setenv("RAGALIQ_JUDGE", spec)
    with Monitor(sample_rate=0.5) as monitor:
        assert monitor.judge.model == model


def test_models_of_two_vendors_judge_in_turn(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    judge = resolve_judge("openai:gpt-5-nano>openai:gpt-5")
    assert judge.name == "openai-compatible:gpt-5-nano>openai-compatible:gpt-5"


def test_a_calibration_is_the_first_judges(tmp_path):
    support = [(i + 0.5) / 200 for i in range(200)]
    calibration = fit_calibration(LocalJudge(), support, [x > 0.4 for x in support])
    calibration.save(tmp_path / "cal.json")
    judge = resolve_judge("local>claude", calibration=tmp_path / "cal.json")
    assert judge.calibration == calibration.id
    assert judge.screening.escalated == pytest.approx(0.5, abs=0.02)


def test_a_monitor_takes_it_from_the_environment(monkeypatch):
    monkeypatch.setenv("RAGALIQ_JUDGE", "local>claude")
    with Monitor() as monitor:
        assert monitor.judge.name == "local>claude"
        assert monitor.stats().executor == "thread"  # a key must not travel to a process


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("local>", "written such as"),
        (">", "written such as"),
        ("local>local", "twice"),
        ("local>gpt", "no judge 'gpt'"),
    ],
)
def test_what_names_no_cascade_is_refused(spec, says):
    with pytest.raises(ConfigurationError, match=says):
        resolve_judge(spec)


@pytest.mark.parametrize(
    "key",
    [
        "sk-ant-SECRET",
        "SECRET" * 8,
        "local>" + "SECRET" * 8,
        "gsk_SECRET",
        "gpt:sk-SECRET",
        "entailment:sk-SECRET",
    ],
)
def test_a_key_in_the_wrong_variable_is_not_repeated(monkeypatch, key):
    monkeypatch.setenv("RAGALIQ_JUDGE", key)
    with pytest.raises(ConfigurationError, match=r"RAGALIQ_JUDGE: .*may be a key") as raised:
        Monitor()
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize("name", ["openai", "claude"])
def test_a_key_in_the_place_of_a_model_is_not_repeated(monkeypatch, name):
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    for spec in (f"{name}:sk-SECRET", f"{name}:{'SECRET' * 8}", f"local>{name}:sk-SECRET"):
        with pytest.raises(ConfigurationError, match="looks like an API key") as raised:
            resolve_judge(spec)
        assert "SECRET" not in str(raised.value)
    with pytest.raises(ConfigurationError, match="two models") as raised:
        named_judge(f"{name}:a", model="sk-SECRET")
    assert "SECRET" not in str(raised.value)
