"""Small judges by name: the input each was trained on, what its outputs mean, and its licence.

Templates, label orders, thresholds and chunk sizes are those of the authors' own code or model
card, which `source` names. Nothing here is fetched: the weights are the user's download.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ragaliq.core.results import Verdict

Labels = tuple[Verdict, ...]
"""A verdict for each output, in order; of a single output, SUPPORTED: its sigmoid is the chance."""

Head = Literal["classifier", "t5_step", "hhem", "alignscore", "tokens", "served"]
"""What is read: a classifier's logits, two words of a T5's first step, HHEM's first token,
AlignScore's three-way layer, each token of the answer, or the words yes and no of a server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A published model and how it is asked.

    Attributes:
        name: As users write it.
        hub: Its repository on the Hugging Face hub, or None for any model of its kind.
        head: What is read of it.
        architectures: What `config.json` may call it; empty where the weights themselves tell.
        template: The one text it reads, with `{context}` and `{claim}`; None for a pair of texts.
        labels: A verdict for each output; None to read them from `config.json`.
        words: Of a T5's first step, the ids of the words for these labels.
        threshold: Chance of support from which on a claim is supported.
        max_tokens: What it reads at once; None for what its positions allow.
        chunk: Length of a window of the context, by the authors' rule; None for all that fits.
        counts_words: Whether `chunk` counts words at spaces and not tokens.
        joiner: Between the sentences of a window.
        licence: Of the weights.
        is_commercial: Whether that licence allows commercial use.
        figure: What the authors published.
        source: Where template and figure are from.
        request: Of a served model, the request's body for a context and a claim.
        yes_means: What the served model's "yes" says of the claim.
        reads_all_steps: Whether yes and no are looked for in the whole reply, not its first token.
    """

    name: str
    head: Head
    licence: str
    figure: str
    source: str
    hub: str | None = None
    architectures: tuple[str, ...] = ()
    template: str | None = None
    labels: Labels | None = ("NOT_ENOUGH_INFO", "SUPPORTED")
    words: tuple[int, ...] = ()
    threshold: float = 0.5
    max_tokens: int | None = None
    chunk: int | None = None
    counts_words: bool = False
    joiner: str = " "
    is_commercial: bool = True
    request: Callable[[str, str], dict[str, Any]] | None = None
    yes_means: Literal["supported", "unsupported"] = "supported"
    reads_all_steps: bool = False


def _granite_3(context: str, claim: str) -> dict[str, Any]:
    return {
        "messages": [
            {"role": "context", "content": context},
            {"role": "assistant", "content": claim},
        ],
        "chat_template_kwargs": {"guardian_config": {"risk_name": "groundedness"}},
        "max_tokens": 5,
    }


def _granite_3_3(context: str, claim: str) -> dict[str, Any]:
    return {
        "messages": [{"role": "assistant", "content": claim}],
        "documents": [{"doc_id": "0", "text": context}],
        "chat_template_kwargs": {
            "guardian_config": {"criteria_id": "groundedness"},
            "think": False,
        },
        "max_tokens": 12,
    }


def _bespoke(context: str, claim: str) -> dict[str, Any]:
    system = (
        "Determine whether the provided claim is consistent with the corresponding document. "
        "Consistency in this context implies that all information presented in the claim is "
        "substantiated by the document. If not, it should be considered inconsistent. Please "
        "assess the claim's consistency with the document by responding with either "
        '"Yes" or "No".'
    )
    return {
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": f"Document: {context}\nClaim: {claim}"},
        ],
        "max_tokens": 1,
    }


_PALADIN = """
You are tasked with determining whether a given claim is consistent with the information provided \
in a document. Consistency means that all information in the claim is supported by the document. \
If any part of the claim contradicts or is not substantiated by the document, it should be \
considered inconsistent.

Analyze the claim in relation to the information provided in the document. Consider the following:
1. Does the document explicitly support all parts of the claim?
2. Is there any information in the claim that contradicts the document?
3. Does the claim contain any details not mentioned in the document?

Before providing your reasoning, give your final answer as either "Yes" (the claim is consistent \
with the document) or "No" (the claim is not consistent with the document). The reasoning should \
follow the final answer.

The answer should begin with a single word: "Yes" or "No".

---
First, carefully read the following document:
<DOCUMENT>
{context}
</DOCUMENT>

Now, consider this claim:
<CLAIM>
{claim}
</CLAIM>

What is your answer?"""


def _paladin(context: str, claim: str) -> dict[str, Any]:
    content = filled(_PALADIN, context, claim)
    return {"messages": [{"role": "user", "content": content}], "max_tokens": 1}


def filled(template: str, context: str, claim: str) -> str:
    """A template with `{context}` and, after it, `{claim}`; braces in the texts mean nothing."""
    before, _, rest = template.partition("{context}")
    between, _, after = rest.partition("{claim}")
    return f"{before}{context}{between}{claim}{after}"


def passages_prompt(passages: Sequence[str], question: str) -> str:
    """LettuceDetect's prompt (lettucedetect/prompts): with a question, and without one."""
    context = "\n".join(f"passage {i}: {text}" for i, text in enumerate(passages, start=1))
    if not question.strip():
        return f"Summarize the following text:\n{context}\noutput:"
    return (
        f"Briefly answer the following question:\n{question}\n"
        "Bear in mind that your response should be strictly based on the following "
        f"{len(passages)} passages:\n{context}\n"
        "In case the passages do not contain the necessary information to answer the question, "
        'please reply with: "Unable to answer based on given passages."\noutput:'
    )


_MINICHECK = "github.com/Liyan06/MiniCheck; Tang et al. 2024, arXiv 2404.10774"
_LETTUCE = "github.com/KRLabsOrg/LettuceDetect and the model card"
_GRANITE = "github.com/ibm-granite/granite-guardian"
_TOKENS: Labels = ("SUPPORTED", "NOT_ENOUGH_INFO")

_ALL = (
    Preset(
        name="factcg",
        hub="yaxili96/FactCG-DeBERTa-v3-Large",
        head="classifier",
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
        head="classifier",
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
        head="classifier",
        architectures=("DebertaV2ForSequenceClassification",),
        template="{context}[SEP]{claim}",
        max_tokens=2048,
        chunk=400,
        licence="see the model card",
        figure="73.1 mean balanced accuracy on LLM-AggreFact",
        source=f"{_MINICHECK}; the figure: arXiv 2501.17144, table 10",
    ),
    Preset(
        name="minicheck-flan-t5",
        hub="lytang/MiniCheck-Flan-T5-Large",
        head="t5_step",
        architectures=("T5ForConditionalGeneration",),
        template="predict: {context}</s>{claim}",
        words=(3, 209),
        max_tokens=2048,
        chunk=500,
        counts_words=True,
        licence="see the model card",
        figure="75.0 mean balanced accuracy on LLM-AggreFact",
        source=f"{_MINICHECK}; the benchmark's leaderboard",
    ),
    Preset(
        name="hhem-2.1-open",
        hub="vectara/hallucination_evaluation_model",
        head="hhem",
        template=(
            "<pad> Determine if the hypothesis is true given the premise?\n\n"
            "Premise: {context}\n\nHypothesis: {claim}"
        ),
        max_tokens=2048,
        licence="Apache-2.0",
        figure="64.4 balanced accuracy on RAGTruth-Summ, 74.3 on RAGTruth-QA",
        source="the model card and modeling_hhem_v2.py of its repository",
    ),
    Preset(
        name="alignscore",
        hub="yzha/AlignScore",
        head="alignscore",
        architectures=("RobertaModel", "RobertaForMaskedLM"),
        # The second and third outputs are not told apart by the authors' own scoring.
        labels=("SUPPORTED", "NOT_ENOUGH_INFO", "NOT_ENOUGH_INFO"),
        max_tokens=512,
        chunk=350,
        counts_words=True,
        licence="MIT (the authors' repository)",
        figure="70.4 mean balanced accuracy on LLM-AggreFact (the large model)",
        source=(
            "github.com/yuh-zha/AlignScore, mode nli_sp; Zha et al. 2023, arXiv 2305.16739; "
            "the figure: arXiv 2404.10774"
        ),
    ),
    Preset(
        name="nli-deberta",
        hub="cross-encoder/nli-deberta-v3-base",
        head="classifier",
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
        head="classifier",
        architectures=("DebertaV2ForSequenceClassification",),
        labels=("SUPPORTED", "NOT_ENOUGH_INFO", "CONTRADICTED"),
        max_tokens=512,
        licence="MIT",
        figure="none on grounded answers",
        source="the model card: entailment, neutral, contradiction",
    ),
    *(
        Preset(
            name=name,
            hub=f"KRLabsOrg/{hub}",
            head="tokens",
            architectures=("ModernBertForTokenClassification",),
            labels=_TOKENS,
            max_tokens=4096,
            licence="MIT",
            figure=f"{f1} F1 on RAGTruth, whole answers",
            source=_LETTUCE,
        )
        for name, hub, f1 in (
            ("lettucedetect-base", "lettucedect-base-modernbert-en-v1", "76.1"),
            ("lettucedetect-large", "lettucedect-large-modernbert-en-v1", "79.2"),
            ("tinylettuce-17m", "tinylettuce-ettin-17m-en", "68.5"),
            ("tinylettuce-32m", "tinylettuce-ettin-32m-en", "72.2"),
            ("tinylettuce-68m", "tinylettuce-ettin-68m-en", "75.0"),
        )
    ),
    Preset(
        name="granite-guardian-3.3",
        hub="ibm-granite/granite-guardian-3.3-8b",
        head="served",
        request=_granite_3_3,
        yes_means="unsupported",
        reads_all_steps=True,
        max_tokens=32_000,
        licence="Apache-2.0",
        figure="76.5 mean balanced accuracy on LLM-AggreFact, IBM's own",
        source=f"{_GRANITE}, evaluation/models/granite_guardian_3_3.py",
    ),
    Preset(
        name="granite-guardian-3.2",
        hub="ibm-granite/granite-guardian-3.2-5b",
        head="served",
        request=_granite_3,
        yes_means="unsupported",
        reads_all_steps=True,
        max_tokens=32_000,
        licence="Apache-2.0",
        figure="none looked up",
        source=f"{_GRANITE}, evaluation/models/granite_guardian_3.py (3.0 to 3.2)",
    ),
    Preset(
        name="bespoke-minicheck-7b",
        hub="bespokelabs/Bespoke-MiniCheck-7B",
        head="served",
        request=_bespoke,
        max_tokens=32_768,
        licence="CC BY-NC 4.0; commercial licences from Bespoke Labs",
        is_commercial=False,
        figure="77.4 mean balanced accuracy on LLM-AggreFact",
        source="github.com/Liyan06/MiniCheck, minicheck/utils.py; the benchmark's leaderboard",
    ),
    Preset(
        name="paladin-mini",
        hub="qualifire/context-grounding-paladin-mini",
        head="served",
        request=_paladin,
        max_tokens=16_000,
        licence="gated: the terms on its model card",
        figure="79.3 mean of the authors' own choice of sets",
        source="the model card; Ivry and Nahum 2025, arXiv 2506.20384",
    ),
)

PRESETS: Mapping[str, Preset] = {preset.name: preset for preset in _ALL}

# What a folder's name gives away. Read without its template such a model answers plausibly and
# wrong, so it is refused rather than guessed.
_MARKS = {
    "factcg": "factcg",
    "minicheck-roberta": "minicheck-roberta",
    "minicheck-deberta": "minicheck-deberta",
    "minicheck-flan": "minicheck-flan-t5",
    "hallucination_evaluation_model": "hhem-2.1-open",
    "hhem": "hhem-2.1-open",
    "alignscore": "alignscore",
    "tinylettuce": "tinylettuce-17m",
    "lettucedect": "lettucedetect-base",
    "lettucedetect": "lettucedetect-base",
}


def preset_meant_by(name: str) -> str | None:
    """The preset that the name of a folder or repository speaks of; None for any other name."""
    return next((preset for mark, preset in _MARKS.items() if mark in name.lower()), None)
