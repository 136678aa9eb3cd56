"""Groundedness models behind a chat-completions server, read by their words' log-probabilities."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import (
    JudgeAPIError,
    JudgeError,
    JudgeResponseError,
    JudgeTimeoutError,
)
from ragaliq.judges.clients import check_address, token_count
from ragaliq.judges.entailment.models import Pair, Scores, Support
from ragaliq.judges.entailment.presets import Preset

_AT_ONCE = 8
_CHARACTERS_A_TOKEN = 3
_TIMEOUT = 60.0  # seconds to wait for one reply


class ServedScorer:
    """Asks a server whether one claim is grounded: yes or no, one request a claim.

    The context stands before the claim in every template. One request of those that share a context
    is sent first and the others after it, so that a server with prefix caching reads it once.

    Raises:
        ConfigurationError: The address is none.
    """

    def __init__(
        self,
        preset: Preset,
        request: Callable[[str, str], dict[str, Any]],
        *,
        base_url: str,
        model: str | None,
        api_key: str | None,
        max_tokens: int | None,
    ) -> None:
        check_address(base_url, where="base_url=")
        self.name = model or preset.hub or preset.name
        self.max_tokens = max_tokens or preset.max_tokens
        self._preset, self._url = preset, f"{base_url.rstrip('/')}/chat/completions"
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._request, self._headers = request, headers
        self._clients: dict[int, httpx2.Client] = {}

    def count(self, text: str) -> int:
        """Tokens of a text, guessed: the server's tokenizer is not here."""
        return -(-len(text) // _CHARACTERS_A_TOKEN)

    def taken(self, claim: str) -> int:
        """Tokens of a request without its context, guessed."""
        asked = self._request("", claim)
        return self.count("".join(each["content"] for each in asked["messages"])) + 300

    def score(self, pairs: Sequence[Pair]) -> Scores:
        """Ask about each pair; several at the same time, each context first once.

        Raises:
            JudgeError: A request failed; what the others cost is in its `usage`.
        """
        first = {context: i for i, (context, _) in reversed(list(enumerate(pairs)))}
        leading = sorted(first.values())
        others = [i for i in range(len(pairs)) if i not in leading]
        supports: dict[int, Support] = {}
        paid: list[JudgeUsage] = []

        def ask(i: int) -> None:
            supports[i], usage = self._ask(*pairs[i])
            paid.append(usage)

        try:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                for places in (leading, others):
                    list(pool.map(ask, places))
        except JudgeError as error:
            error.usage = sum(paid, JudgeUsage())
            raise
        return Scores([supports[i] for i in range(len(pairs))], sum(paid, JudgeUsage()))

    def fingerprint(self) -> str:
        """The model's name and how it is asked: what is behind the server cannot be seen."""
        return f"{self._preset.name} {self._request('', '')}"

    def _ask(self, context: str, claim: str) -> tuple[Support, JudgeUsage]:
        body = {
            "model": self.name,
            "temperature": 0,
            "logprobs": True,
            "top_logprobs": 20,
            **self._request(context, claim),
        }
        failure: JudgeError
        try:
            reply = self._client().post(self._url, json=body)
            if reply.is_success:
                return self._read(reply.json())
            failure = JudgeAPIError(
                f"the server of {self.name} answered {reply.status_code}; check the model's name "
                "and that it serves chat completions with log-probabilities"
            )
        except httpx2.TimeoutException:
            failure = JudgeTimeoutError(f"{self.name} did not answer within {_TIMEOUT:g} s")
        except httpx2.HTTPError as error:
            failure = JudgeAPIError(
                f"the server of {self.name} cannot be reached ({type(error).__name__})"
            )
        except ValueError:
            failure = JudgeResponseError(f"the server of {self.name} answered no JSON")
        # Raised outside the handlers: the client's error holds the request.
        raise failure

    def _client(self) -> httpx2.Client:
        # A forked worker must not use its parent's connections.
        known = self._clients.get(os.getpid())
        if known is None:
            made = httpx2.Client(timeout=_TIMEOUT, headers=self._headers)
            known = self._clients.setdefault(os.getpid(), made)
        return known

    def _read(self, reply: Any) -> tuple[Support, JudgeUsage]:
        try:
            steps = reply["choices"][0]["logprobs"]["content"]
            if not self._preset.reads_all_steps:
                steps = steps[:1]
            chances = {"yes": 0.0, "no": 0.0}
            for step in steps:
                for each in step["top_logprobs"] or [step]:
                    word = str(each["token"]).strip().lower()
                    if word in chances:
                        chances[word] += math.exp(float(each["logprob"]))
        except (LookupError, TypeError, ValueError):
            raise JudgeResponseError(
                f"the server of {self.name} sends no log-probabilities; the judge reads yes and no "
                "from them"
            ) from None
        total = math.fsum(chances.values())
        if total <= 0.0:
            raise JudgeResponseError(
                f"{self.name} answered neither yes nor no; is it the model of the preset "
                f"{self._preset.name}?"
            )
        said_yes = chances["yes"] / total
        spent = reply.get("usage") or {}
        usage = JudgeUsage(
            input_tokens=token_count(spent.get("prompt_tokens")),
            output_tokens=token_count(spent.get("completion_tokens")),
            requests=1,
            cost_usd=None,
        )
        is_supported = self._preset.yes_means == "supported"
        return Support(said_yes if is_supported else 1.0 - said_yes), usage
