"""A sequence-classification model loaded with transformers and torch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ragaliq.errors import ConfigurationError
from ragaliq.judges.entailment.labels import labels_from_config, labels_from_user
from ragaliq.judges.entailment.scoring import Pair, Support, probabilities

__all__ = ["TransformersScorer"]

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
        torch, transformers = _libraries()
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


def _libraries() -> tuple[Any, Any]:
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
