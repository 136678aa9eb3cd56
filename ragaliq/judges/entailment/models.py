"""The models behind an `EntailmentJudge`: what their outputs mean, and how each kind is run."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ragaliq.core.results import Verdict
from ragaliq.errors import ConfigurationError, JudgeResponseError

__all__ = [
    "FunctionScorer",
    "OnnxScorer",
    "Pair",
    "PairScorer",
    "Support",
    "TransformersScorer",
    "labels_from_config",
    "labels_from_user",
    "probabilities",
]


# What the outputs mean; refused where that would be a guess.

Labels = tuple[Verdict, ...]
"""A verdict for each output, in order; of a single output, SUPPORTED: its sigmoid is the chance."""

_MEANINGS: Mapping[Verdict, frozenset[str]] = {
    "SUPPORTED": frozenset(
        "consistent entail entailed entailment entails factual faithful grounded support supported "
        "supports".split()
    ),
    "CONTRADICTED": frozenset(
        "contradict contradicted contradiction contradicts refute refuted refutes".split()
    ),
    "NOT_ENOUGH_INFO": frozenset(
        "hallucinated hallucination inconsistent nei neutral notconsistent notentailed "
        "notentailment notenoughinfo notenoughinformation notfaithful notfactual notgrounded "
        "notsupported unfaithful ungrounded unsupported".split()
    ),
}
_ADVICE = (
    'pass labels= with a verdict for each output in order, such as labels=("CONTRADICTED", '
    '"NOT_ENOUGH_INFO", "SUPPORTED"); the model\'s card says which is which'
)


def labels_from_config(names: Mapping[int, str] | None, *, model: str) -> Labels:
    """Read the names a model gives its outputs.

    Args:
        names: By the number of the output, as `id2label` of a Hugging Face configuration.
        model: For the message.

    Raises:
        ConfigurationError: A name says nothing, such as `LABEL_0`, or the names are no such set.
    """
    if not names:
        raise ConfigurationError(f"{model} does not name its outputs; {_ADVICE}")
    if sorted(names) != list(range(len(names))):
        raise ConfigurationError(f"{model} numbers its outputs with gaps; {_ADVICE}")
    return _checked([_meaning(names[i], model) for i in range(len(names))], model)


def labels_from_user(labels: Sequence[str], *, outputs: int | None, model: str) -> Labels:
    """Check the meanings a user gives.

    Args:
        labels: A verdict for each output, in order.
        outputs: How many outputs the model has; None where that is not known yet.
        model: For the message.

    Raises:
        ConfigurationError: They are no verdicts, none is SUPPORTED, or their number is wrong.
    """
    if isinstance(labels, str):
        raise ConfigurationError(f"EntailmentJudge: labels must be a sequence; {_ADVICE}")
    known: list[Verdict] = []
    for label in labels:
        meaning = next((verdict for verdict in _MEANINGS if verdict == label), None)
        if meaning is None:
            raise ConfigurationError(
                f"EntailmentJudge: {label!r} is none of {', '.join(_MEANINGS)}; {_ADVICE}"
            )
        known.append(meaning)
    if outputs is not None and len(known) != outputs:
        raise ConfigurationError(
            f"EntailmentJudge: {len(known)} labels were given and {model} has {outputs} outputs"
        )
    return _checked(known, model)


def _meaning(name: str, model: str) -> Verdict:
    plain = re.sub(r"[^a-z]", "", str(name).lower())
    for verdict, words in _MEANINGS.items():
        if plain in words:
            return verdict
    raise ConfigurationError(f"{model} calls an output {name!r}, which says nothing; {_ADVICE}")


def _checked(labels: Sequence[Verdict], model: str) -> Labels:
    if labels.count("SUPPORTED") != 1 or labels.count("CONTRADICTED") > 1:
        raise ConfigurationError(
            f"one output of {model} must mean SUPPORTED and at most one CONTRADICTED, got "
            f"{', '.join(labels)}; {_ADVICE}"
        )
    return tuple(labels)


# What a model must be able to do.

Pair = tuple[str, str]
"""What is given, and what may follow from it."""


class Support(NamedTuple):
    """What a model makes of a pair.

    Attributes:
        supported: The chance that the claim follows, 0 to 1.
        contradicted: The chance that its opposite does; 0 of a model that cannot tell.
    """

    supported: float
    contradicted: float = 0.0


class PairScorer(Protocol):
    """A model behind an `EntailmentJudge`.

    Attributes:
        name: Of the model; never a path.
        max_tokens: Tokens a pair may have; None for no limit.
        own_tokens: Tokens the model adds to a pair.
    """

    name: str
    max_tokens: int | None
    own_tokens: int

    def count(self, text: str) -> int:
        """Tokens of a text."""
        ...

    def score(self, pairs: Sequence[Pair]) -> list[Support]:
        """Score pairs; called on one thread at a time."""
        ...

    def fingerprint(self) -> str:
        """Changes with the model's parameters."""
        ...


class FunctionScorer:
    """Any function from pairs to chances of support.

    Args:
        function: Gets (context, claim) pairs; returns the chance of support for each.
        max_tokens: Words a pair may have; None for no limit.
    """

    own_tokens = 0

    def __init__(
        self, function: Callable[[list[Pair]], Sequence[float]], *, max_tokens: int | None
    ) -> None:
        self._function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self.max_tokens = max_tokens

    def count(self, text: str) -> int:
        """Words of a text: what a token is, only the function knows."""
        return len(text.split())

    def score(self, pairs: Sequence[Pair]) -> list[Support]:
        """Call the function."""
        found = [float(value) for value in self._function(list(pairs))]
        if len(found) != len(pairs):
            raise JudgeResponseError(f"{self.name} gave {len(found)} scores for {len(pairs)} pairs")
        return [Support(_share(value, self.name)) for value in found]

    def fingerprint(self) -> str:
        """The function's name: what is behind it cannot be seen."""
        return self.name


def probabilities(logits: Sequence[float], labels: Labels, model: str) -> Support:
    """Turn a model's outputs for one pair into chances: softmax, or sigmoid of a single one.

    Raises:
        JudgeResponseError: An output is no finite number.
    """
    if not all(math.isfinite(value) for value in logits):
        raise JudgeResponseError(f"{model} gave an output that is no number")
    if len(labels) == 1:
        return Support(1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, logits[0])))))
    top = max(logits)
    weights = [math.exp(value - top) for value in logits]
    shares = dict(zip(labels, (weight / math.fsum(weights) for weight in weights), strict=True))
    return Support(shares["SUPPORTED"], shares.get("CONTRADICTED", 0.0))


def _share(value: float, name: str) -> float:
    if not 0.0 <= value <= 1.0:  # nor NaN
        raise JudgeResponseError(f"{name} gave a score outside 0 to 1")
    return value


# An ONNX file with its tokenizer, run by onnxruntime: no torch needed.

_BLOCK = 1 << 20


class OnnxScorer:
    """Scores pairs with an ONNX file.

    Args:
        model: The file. Beside it, or one folder up, `tokenizer.json` and, unless `labels` are
            given, `config.json`.
        labels: A verdict for each output.
        device: `cpu`, `cuda`, or the name of an onnxruntime provider; by default `cpu`.
        batch_size: Pairs scored at once.
        max_tokens: Tokens a pair may have; by default what `config.json` says.

    Raises:
        ConfigurationError: The extra is not installed, a file is missing or of another kind, or
            the outputs cannot be told apart.
    """

    def __init__(
        self,
        model: Path,
        *,
        labels: Sequence[str] | None,
        device: str | None,
        batch_size: int,
        max_tokens: int | None,
    ) -> None:
        runtime, tokenizers, numpy = _onnx_libraries()
        self._path, self._numpy, self._batch_size = model, numpy, batch_size
        self.name = model.name
        config = _config(model)
        self._tokenizer = _tokenizer(tokenizers, model)
        self._session = _session(runtime, model, device)
        self._inputs = [each.name for each in self._session.get_inputs()]
        width = self._session.get_outputs()[0].shape[-1]
        outputs = width if isinstance(width, int) else None
        if labels is None:
            names = {int(i): name for i, name in config.get("id2label", {}).items()}
            labels = labels_from_config(names, model=self.name)
        self._labels = labels_from_user(labels, outputs=outputs, model=self.name)
        limit = config.get("max_position_embeddings")
        self.max_tokens = max_tokens or (limit if isinstance(limit, int) and limit > 0 else None)
        self.own_tokens = int(self._tokenizer.num_special_tokens_to_add(is_pair=True))
        self._tokenizer.no_truncation()
        self._tokenizer.enable_padding(pad_id=int(config.get("pad_token_id") or 0))

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def score(self, pairs: Sequence[Pair]) -> list[Support]:
        """Score pairs in batches."""
        found: list[Support] = []
        for start in range(0, len(pairs), self._batch_size):
            read = self._tokenizer.encode_batch(list(pairs[start : start + self._batch_size]))
            columns = {
                "input_ids": [each.ids for each in read],
                "attention_mask": [each.attention_mask for each in read],
                "token_type_ids": [each.type_ids for each in read],
            }
            feed = {name: self._numpy.array(columns[name], "int64") for name in self._inputs}
            logits = self._session.run(None, feed)[0].tolist()
            found += [probabilities(row, self._labels, self.name) for row in logits]
        return found

    def fingerprint(self) -> str:
        """A hash of the file and of what its outputs mean."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = blake2b(f"{self._labels} {self.max_tokens}".encode(), digest_size=8)
        with self._path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        return digest.hexdigest()


def _onnx_libraries() -> tuple[Any, Any, Any]:
    try:
        import numpy
        import onnxruntime
        import tokenizers
    except ImportError as error:
        raise ConfigurationError(
            f"EntailmentJudge needs {error.name} for an ONNX file; "
            "pip install 'ragaliq[entailment-onnx]'"
        ) from None
    return onnxruntime, tokenizers, numpy


def _beside(model: Path, name: str) -> Path | None:
    return next((p for p in (model.parent / name, model.parent.parent / name) if p.is_file()), None)


def _config(model: Path) -> dict[str, Any]:
    path = _beside(model, "config.json")
    if path is None:
        return {}
    try:
        stored = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        stored = None
    if not isinstance(stored, dict):
        raise ConfigurationError(f"config.json beside {model.name} is no JSON object")
    return stored


def _tokenizer(tokenizers: Any, model: Path) -> Any:
    path = _beside(model, "tokenizer.json")
    if path is None:
        raise ConfigurationError(
            f"there is no tokenizer.json beside {model.name} or one folder up; export it with the "
            "model"
        )
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001 - the library raises plain Exception
        raise ConfigurationError(
            f"tokenizer.json beside {model.name} cannot be read ({type(error).__name__})"
        ) from None


def _session(runtime: Any, model: Path, device: str | None) -> Any:
    known = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
    provider = known.get(device or "cpu", device)
    if provider not in runtime.get_available_providers():
        raise ConfigurationError(
            f"EntailmentJudge: onnxruntime has no {device!r} here; use one of "
            f"{', '.join(runtime.get_available_providers())}"
        )
    try:
        session = runtime.InferenceSession(str(model), providers=[provider])
    except Exception as error:  # noqa: BLE001 - the runtime's errors have no common base
        raise ConfigurationError(
            f"{model.name} cannot be loaded as an ONNX model ({type(error).__name__})"
        ) from None
    unknown = {each.name for each in session.get_inputs()} - {
        "input_ids",
        "attention_mask",
        "token_type_ids",
    }
    if unknown:
        raise ConfigurationError(
            f"{model.name} wants inputs a pair of texts does not give: {', '.join(sorted(unknown))}"
        )
    return session


# A sequence-classification model, loaded with transformers and torch.

_NO_LIMIT = 1_000_000
"""Tokenizers that know no limit say a number far above."""


class TransformersScorer:
    """Scores pairs with a Hugging Face model.

    Args:
        model: A folder, or a name on the hub, from where it is fetched unless it was before.
        labels: A verdict for each output; by default as the model's configuration names them.
        device: Such as `cpu`, `cuda` or `mps`; by default the first of `cuda` and `mps` there is.
        batch_size: Pairs scored at once.
        max_tokens: Tokens a pair may have; by default what the model takes.

    Raises:
        ConfigurationError: The extra is not installed, the model cannot be loaded, or its outputs
            cannot be told apart.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        labels: Sequence[str] | None,
        device: str | None,
        batch_size: int,
        max_tokens: int | None,
    ) -> None:
        torch, transformers = _torch_libraries()
        self._torch = torch
        self.name = Path(model).name if Path(model).exists() else str(model)
        self._device = _device(torch, device)
        self._batch_size = batch_size
        try:
            # Weights and configuration only: code that comes with a model is not run.
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(str(model))
            loaded = transformers.AutoModelForSequenceClassification.from_pretrained(str(model))
            self._model = loaded.to(self._device).eval()
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            raise ConfigurationError(
                f"{self.name} cannot be loaded as a sequence-classification model "
                f"({type(error).__name__}); name a folder with config.json, weights and tokenizer, "
                "or a model that can be downloaded"
            ) from None
        config = self._model.config
        self._labels = (
            labels_from_config(config.id2label, model=self.name)
            if labels is None
            else labels_from_user(labels, outputs=config.num_labels, model=self.name)
        )
        self.max_tokens = max_tokens or _limit(self._tokenizer, config)
        self.own_tokens = int(self._tokenizer.num_special_tokens_to_add(pair=True))

    def count(self, text: str) -> int:
        """Tokens of a text."""
        # Not a warning for a text that is longer than the model takes: that is why it is counted.
        return len(self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def score(self, pairs: Sequence[Pair]) -> list[Support]:
        """Score pairs in batches."""
        found: list[Support] = []
        for start in range(0, len(pairs), self._batch_size):
            batch = pairs[start : start + self._batch_size]
            read = self._tokenizer(
                [premise for premise, _ in batch],
                [claim for _, claim in batch],
                padding=True,
                return_tensors="pt",
            ).to(self._device)
            with self._torch.inference_mode():
                logits = self._model(**read).logits.float().cpu().tolist()
            found += [probabilities(row, self._labels, self.name) for row in logits]
        return found

    def fingerprint(self) -> str:
        """A hash of the configuration's outputs and of all weights."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = blake2b(f"{self._labels} {self.max_tokens}".encode(), digest_size=8)
        for name, values in sorted(self._model.state_dict().items()):
            digest.update(name.encode())
            plain = values.detach().cpu().contiguous()
            digest.update(plain.view(self._torch.uint8).numpy() if plain.dim() else b"0")
        return digest.hexdigest()


def _torch_libraries() -> tuple[Any, Any]:
    try:
        import torch
        import transformers
    except ImportError as error:
        raise ConfigurationError(
            f"EntailmentJudge needs {error.name}; pip install 'ragaliq[entailment]', or use an "
            "ONNX file with 'ragaliq[entailment-onnx]'"
        ) from None
    return torch, transformers


def _device(torch: Any, asked: str | None) -> Any:
    if asked is None:
        if torch.cuda.is_available():
            asked = "cuda"
        else:
            asked = "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(asked)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise ConfigurationError(
            f"EntailmentJudge: there is no device {asked!r} here; use 'cpu'"
        ) from None
    return device


def _limit(tokenizer: Any, config: Any) -> int | None:
    limits = [tokenizer.model_max_length, getattr(config, "max_position_embeddings", None)]
    if getattr(config, "model_type", "") in ("roberta", "xlm-roberta", "camembert"):
        # Its positions begin behind the padding's own number.
        limits[1] = (limits[1] or _NO_LIMIT) - config.pad_token_id - 1
    known = [int(limit) for limit in limits if limit and 0 < limit < _NO_LIMIT]
    return min(known, default=None)
