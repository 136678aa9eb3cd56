"""An ONNX file with its tokenizer, run by onnxruntime: no torch needed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ragaliq.errors import ConfigurationError
from ragaliq.judges.entailment.labels import labels_from_config, labels_from_user
from ragaliq.judges.entailment.scoring import Pair, Support, probabilities

__all__ = ["OnnxScorer"]

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
        runtime, tokenizers, numpy = _libraries()
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


def _libraries() -> tuple[Any, Any, Any]:
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
