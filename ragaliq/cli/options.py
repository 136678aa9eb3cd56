"""Options shared by several commands, and their values."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from enum import StrEnum
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple

import typer

from ragaliq.cli.console import INPUT, JUDGE, SCORES, errors
from ragaliq.core.checks import did_you_mean, naming
from ragaliq.core.dates import DATE_EXAMPLES, parse_moment
from ragaliq.core.policy import ScoringPolicy
from ragaliq.datasets import CaseReader, read_cases
from ragaliq.datasets.cases import require_known
from ragaliq.datasets.opening import standard_input
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.evaluators import get_evaluator, list_evaluators
from ragaliq.evaluators.evaluator import Evaluator
from ragaliq.evaluators.metrics import ClaimEvaluator
from ragaliq.evaluators.rubric import Rubric
from ragaliq.judges.base import LLMJudge, identity_of
from ragaliq.judges.resolve import assembled, named_judge, stage_names


class PolicyName(StrEnum):
    """The named scoring policies."""

    RAGALIQ = "ragaliq"
    RAGAS = "ragas"
    RAG_EVALS = "rag_evals"
    PROMPTFOO = "promptfoo"
    LIVE = "live"


class StrategyName(StrEnum):
    """Strategies for asking a judge."""

    BATCHED = "batched"
    PER_CLAIM = "per_claim"
    SINGLE_PASS = "single_pass"  # noqa: S105 - a strategy


Data = Annotated[
    list[str],
    typer.Argument(
        help="Files of cases (.jsonl, .json, .csv, .tsv, .parquet) or traces "
        "(OTLP, Phoenix's exports), also .gz; - for standard input.",
        metavar="DATA",
    ),
]
Judge = Annotated[
    str | None,
    typer.Option(
        help="local (embedded, no key), claude or claude:MODEL (key in ANTHROPIC_API_KEY), "
        "openai:MODEL (key in OPENAI_API_KEY; any compatible server with --base-url or "
        "OPENAI_BASE_URL), entailment:NAME (a small model, such as entailment:factcg), "
        "entailment (your own model), or a cascade such as 'local>openai:gpt-5-mini'. "
        "Default: RAGALIQ_JUDGE, else local "
        "(estimate: claude).",
        metavar="NAME",
        rich_help_panel=JUDGE,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        help="The judge's model; openai needs its name, entailment a folder or an .onnx "
        "file. Default for claude: RAGALIQ_MODEL.",
        metavar="NAME",
        rich_help_panel=JUDGE,
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        help="Address of an OpenAI-compatible server.", metavar="URL", rich_help_panel=JUDGE
    ),
]
CalibrationFile = Annotated[
    Path | None,
    typer.Option(
        "--calibration",
        help="A file that `ragaliq calibrate` wrote for this judge. Default: RAGALIQ_CALIBRATION.",
        rich_help_panel=JUDGE,
    ),
]
Metrics = Annotated[
    str | None,
    typer.Option(
        help="Names with commas between them; `ragaliq metrics` lists them. Default: "
        "faithfulness, and relevance if the judge is a language model.",
        metavar="NAMES",
        rich_help_panel=SCORES,
    ),
]
Rubrics = Annotated[
    list[str] | None,
    typer.Option(
        "--rubric",
        help="A metric in your own words, for judges that are language models, such as "
        "'polite=The answer is polite.'; repeatable.",
        metavar="NAME=CRITERION",
        rich_help_panel=SCORES,
    ),
]
Policy = Annotated[
    PolicyName,
    typer.Option(
        help="What an empty answer, a refusal or a missing context counts as: no score "
        "under live, a pass under ragaliq where the answer makes no claim.",
        rich_help_panel=SCORES,
    ),
]
Strategy = Annotated[
    StrategyName | None,
    typer.Option(
        help="How the judge is asked about claims. Default: batched where the judge can.",
        rich_help_panel=JUDGE,
    ),
]
Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        help="The column that holds a field, such as query=frage; repeatable.",
        metavar="FIELD=NAME",
        rich_help_panel=INPUT,
    ),
]
SplitContext = Annotated[
    str | None,
    typer.Option(
        "--split-context",
        help="What stands between the chunks of a cell that holds several as plain text, such as "
        "'|'. Lists as JSON need nothing.",
        metavar="SEPARATOR",
        rich_help_panel=INPUT,
    ),
]
MappingFile = Annotated[
    Path | None,
    typer.Option(
        "--mapping",
        help="A TOML file that describes your application's spans; for traces.",
        metavar="FILE",
        rich_help_panel=INPUT,
    ),
]
Resolve = Annotated[
    str | None,
    typer.Option(
        help="A function that fetches the texts of documents that spans name only by id;"
        " for traces.",
        metavar="MODULE:FUNCTION",
        rich_help_panel=INPUT,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        help="Encoding of the file. Default: UTF-8, or its byte order mark.", rich_help_panel=INPUT
    ),
]
SkipBadRows = Annotated[
    bool,
    typer.Option(
        "--skip-bad-rows", help="Skip unreadable rows and count them.", rich_help_panel=INPUT
    ),
]


def _moment(text: str | datetime) -> datetime:
    if isinstance(text, datetime):
        return text
    try:
        return parse_moment(text)
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is not a date: write {DATE_EXAMPLES}") from None


Since = Annotated[
    datetime | None,
    typer.Option(
        parser=_moment,
        metavar="DATE",
        help="Only answers evaluated at this time or later (UTC): 2026-11-27, "
        "'2026-11-27 14:30', yesterday, 7d.",
    ),
]
Until = Annotated[
    datetime | None,
    typer.Option(
        parser=_moment, metavar="DATE", help="Only answers evaluated before this time (UTC)."
    ),
]
Pipeline = Annotated[str | None, typer.Option(help="Only answers of this pipeline.")]


def evaluators_of(
    metrics: str | None,
    judge: LLMJudge,
    *,
    policy: PolicyName,
    strategy: StrategyName | None = None,
    thresholds: Sequence[str] | None = None,
    declines: Sequence[str] = (),
    rubrics: Sequence[str] = (),
) -> tuple[Evaluator, ...]:
    """Metrics and rubrics that the options name; by default the judge's metrics."""
    names = list(judge.default_metrics) if metrics is None else named_metrics(metrics)
    criteria = _criteria_of(rubrics)
    names += criteria
    if len(set(names)) < len(names):
        raise ConfigurationError("--metrics, --rubric: one is named twice")
    scores: dict[str, float] = {}
    for option in thresholds or ():
        name, _, score = option.partition("=")
        try:
            scores[name.strip()] = float(score)
        except ValueError:
            raise ConfigurationError(
                f"--threshold {option!r}: write it as METRIC=SCORE, such as {names[0]}=0.8"
            ) from None
        if not 0.0 <= scores[name.strip()] <= 1.0:
            raise ConfigurationError(f"--threshold {option!r}: a threshold must be within [0, 1]")
        if name.strip() not in names:
            unknown = did_you_mean(name.strip(), {*names, *list_evaluators()})
            advice = (
                f"{name} is not measured; measure it by --metrics "
                f"{','.join([*names, name.strip()])}"
                if name.strip() in list_evaluators()
                else f"no metric {name.strip()!r}{unknown}; measured are {', '.join(names)}"
            )
            raise ConfigurationError(f"--threshold {option!r}: {advice}")
    evaluators: list[Evaluator] = []
    scoring: ScoringPolicy = getattr(ScoringPolicy, policy.name).with_declines(declines)
    for name in names:
        if name in criteria:
            least = scores.get(name, Rubric.threshold)
            evaluators.append(Rubric(name, criteria[name], least, policy=scoring))
            continue
        kind, threshold = get_evaluator(name), scores.get(name)
        if strategy is not None and issubclass(kind, ClaimEvaluator):
            evaluators.append(kind(threshold, policy=scoring, strategy=strategy.value))
        else:
            evaluators.append(kind(threshold, policy=scoring))
    return tuple(evaluators)


def _criteria_of(rubrics: Sequence[str]) -> dict[str, str]:
    """The criteria that `--rubric` has, by their names."""
    criteria: dict[str, str] = {}
    for option in rubrics:
        name, equals, criterion = option.partition("=")
        name = name.strip()
        if not (equals and criterion.strip()) or not name.isidentifier() or name in criteria:
            raise ConfigurationError(
                f"--rubric {option!r}: write it as NAME=CRITERION with a name of letters, digits "
                "and underscores, once each, such as 'polite=The answer is polite.'"
            )
        criteria[name] = criterion
    return criteria


def named_metrics(metrics: str) -> list[str]:
    """Names in `--metrics`."""
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    if not names:
        raise ConfigurationError("--metrics: name at least one; `ragaliq metrics` lists them")
    if len(set(names)) < len(names):
        raise ConfigurationError("--metrics: one is named twice")
    return names


@contextmanager
def opened_cases(
    sources: Sequence[str],
    fields: Sequence[str] | None = None,
    *,
    skip_bad_rows: bool = False,
    encoding: str | None = None,
    split_context: str | None = None,
    mapping: Path | None = None,
    resolve: str | None = None,
) -> Iterator[CaseReader]:
    """Open the cases of files, and of standard input for `-`."""
    with ExitStack() as stack:
        paths: list[str | Path] = [*sources]
        folder = ""
        if paths.count("-") > 1:
            raise ConfigurationError("-: standard input is named twice")
        if "-" in paths:
            folder = stack.enter_context(TemporaryDirectory())
            paths[paths.index("-")] = standard_input(folder)
        try:
            yield read_cases(
                *paths,
                fields=names_of(fields),
                on_error="skip" if skip_bad_rows else "raise",
                encoding=encoding,
                split_context=split_context,
                mapping=mapping,
                resolve=None if resolve is None else imported("--resolve", resolve),
            )
        except DatasetError as error:
            if not folder:
                raise
            kept = re.escape(folder + os.sep) + r"stdin\.\w+"
            raise DatasetError(re.sub(kept, "standard input", str(error))) from None


def imported(option: str, spec: str) -> Any:
    """Import the object `MODULE:NAME` of an option, also from the current folder."""
    module, _, name = spec.partition(":")
    if not module or not name:
        raise ConfigurationError(f"{option} {spec}: write it as MODULE:NAME")
    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, folder)
    try:
        return attrgetter(name)(import_module(module))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the module is the user's own
        raise ConfigurationError(f"{option} {spec}: {type(error).__name__}: {error}") from None


def names_of(fields: Sequence[str] | None) -> dict[str, str]:
    """Parse `--field`: column names by field."""
    named: dict[str, str] = {}
    for option in fields or ():
        field, equals, name = option.partition("=")
        if not (equals and field and name):
            raise ConfigurationError(f"--field {option!r}: write it as FIELD=NAME")
        if field.strip() in named:
            raise ConfigurationError(
                f"--field {field.strip()}: given twice; columns that belong together are found "
                "when they are called context_1, context_2 and so on"
            )
        named[field.strip()] = name.strip()
    require_known(named, argument="--field")
    return named


def given_options(context: typer.Context) -> dict[str, str]:
    """Options given on the command line, by their parameters' names."""
    sources = (
        (each, context.get_parameter_source(each.name or "")) for each in context.command.params
    )
    return {
        each.name or "": each.opts[0]
        for each, source in sources
        if source is not None and source.name == "COMMANDLINE"
    }


class ChosenJudge(NamedTuple):
    """A judge, the variables that selected it, and the file of its calibration."""

    judge: LLMJudge
    variables: tuple[str, ...] = ()
    calibration: Path | None = None

    @property
    def title(self) -> str:
        """Name, model and calibration of the judge in one line, with the variables."""
        model = f" ({self.judge.model})" if self.judge.model else ""
        source = f"; from {', '.join(self.variables)}" if self.variables else ""
        return f"judge {self.judge.name}{model}, {identity_of(self.judge).calibration}{source}"

    def announce(self) -> None:
        """Print the judge before it costs anything, if no option names it."""
        if self.variables:
            errors.print(self.title)


def choose_judge(
    name: str | None,
    *,
    model: str | None = None,
    base_url: str | None = None,
    calibration: Path | None = None,
    default: str = "local",
    is_calibrated: bool = True,
    is_asked: bool = True,
) -> ChosenJudge:
    """Choose the judge by the options, else by the environment.

    `RAGALIQ_CALIBRATION` applies if `is_calibrated`, but not if the command itself calibrates the
    judge. If nothing is sent (`is_asked` is False), the judge needs no key, and only a cascade
    needs a calibration, since it then escalates less.
    """
    from ragaliq.scoring.settings import (
        ENV_CALIBRATION,
        ENV_JUDGE,
        ENV_MODEL,
        read_judge_settings,
    )

    settings = read_judge_settings()
    used: list[str] = []
    if name is None:
        name = settings.judge or default
        used += [ENV_JUDGE] if settings.judge else []
    with naming(ENV_JUDGE if used else None):
        stages = stage_names(name)
        if "claude-batch" in stages:
            raise ConfigurationError(
                "--judge claude-batch goes with --pending: store runs in a file by "
                "Monitor(executor='sqlite:///runs.db'), then run "
                "ragaliq evaluate sqlite:///runs.db --pending"
            )
        paid = [stage for stage in stages if stage != "local"]
        has_model = paid in (["claude"], ["openai"], ["openai-compatible"])
        if model is None and settings.model and has_model:
            model = settings.model
            used.append(ENV_MODEL)
        if model is not None and len(paid) > 1:
            raise ConfigurationError(
                f"--model: which judge of {name} is it for? Use the Python API"
            )
        judges = [
            named_judge(
                stage,
                model=None if stage == "local" and paid else model,
                base_url=None if stage == "local" and paid else base_url,
                is_asked=is_asked,
            )
            for stage in stages
        ]
    source = "--calibration"
    is_calibrated = is_calibrated and (is_asked or len(judges) > 1)
    if calibration is None and is_calibrated and settings.calibration:
        calibration, source = Path(settings.calibration), ENV_CALIBRATION
        used.append(source)
    if calibration is None:
        return ChosenJudge(assembled(judges, None), tuple(used))
    from ragaliq.judges.calibration import Calibration

    with naming(source if source in used else None):
        try:
            curve = Calibration.load(calibration)
        except ConfigurationError as error:
            # On the command line this is a file that cannot be read.
            raise DatasetError(f"{source}: {error}") from None
        return ChosenJudge(assembled(judges, curve), tuple(used), calibration)
