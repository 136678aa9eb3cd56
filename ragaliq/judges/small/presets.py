"""Small judges by name: the input each was trained on, what its outputs mean, and its licence.

Templates, label orders, thresholds and chunk sizes are those of the authors' own code or model
card, which `source` names. Nothing here is fetched: the weights are the user's download.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ragaliq.core.results import Verdict

Labels = tuple[Verdict, ...]
"""A verdict for each output, in order; of a single output, SUPPORTED: its sigmoid is the chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A published classifier of two texts and how it is asked.

    Attributes:
        name: As users write it.
        hub: Its repository on the Hugging Face hub; empty for any model of its kind.
        architectures: What `config.json` may call it; empty for any classifier of whole texts.
        template: The one text it reads, with `{context}` and `{claim}`; None for a pair of texts.
        labels: A verdict for each output; None to read them from `config.json`.
        threshold: Chance of support from which on a claim is supported.
        max_tokens: What it reads at once; None for what its positions allow.
        chunk: Length of a window of the context, by the authors' rule; None for all that fits.
        counts_words: Whether `chunk` counts words at spaces and not tokens.
        joiner: Between the sentences of a window.
        licence: Of the weights.
        figure: What the authors published.
        source: Where template and figure are from.
    """

    name: str
    licence: str = ""
    figure: str = ""
    source: str = ""
    hub: str = ""
    architectures: tuple[str, ...] = ()
    template: str | None = None
    labels: Labels | None = ("NOT_ENOUGH_INFO", "SUPPORTED")
    threshold: float = 0.5
    max_tokens: int | None = None
    chunk: int | None = None
    counts_words: bool = False
    joiner: str = " "


def filled(template: str, context: str, claim: str) -> str:
    """A template with `{context}` and, after it, `{claim}`; braces in the texts mean nothing."""
    before, _, rest = template.partition("{context}")
    between, _, after = rest.partition("{claim}")
    return f"{before}{context}{between}{claim}{after}"


_MINICHECK = "github.com/Liyan06/MiniCheck; Tang et al. 2024, arXiv 2404.10774"

_ALL = (
    Preset(
        name="factcg",
        hub="yaxili96/FactCG-DeBERTa-v3-Large",
        architectures=("DebertaV2ForSequenceClassification",),
        template=(
            "{context}\n\nChoose your answer: based on the paragraph above can we conclude that "
            '"{claim}"?\n\nOPTIONS:\n- Yes\n- No\nI think the answer is '
        ),
        max_tokens=2048,
        chunk=550,
        counts_words=True,
        joiner="\n",
        licence="MIT (the authors' repository)",
        figure="75.6 mean balanced accuracy on LLM-AggreFact at 0.5; 77.2 with tuned thresholds",
        source="github.com/derenlei/FactCG; Lei et al. 2025, arXiv 2501.17144, table 10",
    ),
    Preset(
        name="minicheck-roberta",
        hub="lytang/MiniCheck-RoBERTa-Large",
        architectures=("RobertaForSequenceClassification",),
        template="{context}</s>{claim}",
        max_tokens=512,
        chunk=400,
        licence="MIT",
        figure="2 points below MiniCheck-Flan-T5-Large on LLM-AggreFact",
        source=f"{_MINICHECK}; the model card",
    ),
    Preset(
        name="minicheck-deberta",
        hub="lytang/MiniCheck-DeBERTa-v3-Large",
        architectures=("DebertaV2ForSequenceClassification",),
        template="{context}[SEP]{claim}",
        max_tokens=2048,
        chunk=400,
        licence="see the model card",
        figure="73.1 mean balanced accuracy on LLM-AggreFact",
        source=f"{_MINICHECK}; the figure: arXiv 2501.17144, table 10",
    ),
    Preset(
        name="nli-deberta",
        hub="cross-encoder/nli-deberta-v3-base",
        architectures=("DebertaV2ForSequenceClassification",),
        labels=("CONTRADICTED", "SUPPORTED", "NOT_ENOUGH_INFO"),
        max_tokens=512,
        licence="Apache-2.0",
        figure="none on grounded answers",
        source="the model card: contradiction, entailment, neutral",
    ),
    Preset(
        name="nli-mnli-fever-anli",
        hub="MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli",
        architectures=("DebertaV2ForSequenceClassification",),
        labels=("SUPPORTED", "NOT_ENOUGH_INFO", "CONTRADICTED"),
        max_tokens=512,
        licence="MIT",
        figure="none on grounded answers",
        source="the model card: entailment, neutral, contradiction",
    ),
)

PRESETS: Mapping[str, Preset] = {preset.name: preset for preset in _ALL}

# Parts of folder names that reveal a preset. Without its template such a model gives plausible but
# wrong scores, so it is refused.
_MARKS = ("factcg", "minicheck-roberta", "minicheck-deberta")

# Published models that are not classifiers of two texts: each would need its own reader.
_OTHERS = {
    "reads the first word of a T5": ("minicheck-flan", "flan-t5"),
    "reads the first token of an encoder": ("hhem", "hallucination_evaluation_model"),
    "reads a layer of the authors' own": ("alignscore",),
    "classifies tokens": ("lettucedetect", "lettucedect", "tinylettuce"),
    "is asked on a server": ("granite-guardian", "bespoke-minicheck", "paladin"),
}


def preset_meant_by(name: str) -> str | None:
    """Preset that the name of a folder or repository suggests; None for any other name."""
    return next((mark for mark in _MARKS if mark in name.lower()), None)


def other_kind(name: str) -> str | None:
    """Kind of a published model that is not a classifier of two texts; None for others."""
    return next(
        (kind for kind, marks in _OTHERS.items() if any(mark in name.lower() for mark in marks)),
        None,
    )
