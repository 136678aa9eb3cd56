"""List prices of judges' replies."""

from __future__ import annotations

import logging

from ragaliq.core.results import JudgeUsage

BATCH_PRICE = 0.5
"""What a token costs in Anthropic's Message Batches, as a share of its list price; the same for
input, output and cached tokens (platform.claude.com/docs/en/build-with-claude/batch-processing,
read in October 2026)."""

ONE_TOKEN = JudgeUsage(input_tokens=1, requests=1)
"""The smallest request, which has a price if the model has one."""

_LOG = logging.getLogger(__name__)
_unpriced: set[str] = set()


def cost_usd(model: str, usage: JudgeUsage, *, provider: str | None = None) -> float | None:
    """List price of one request, in US dollars; None if it is not known.

    Some models cost more per token in long requests, so requests must not be added up first.
    `provider` serves the model, such as `anthropic`; when None it is found by the model's name.
    """
    if usage.unsplit_tokens:
        return None
    # Loaded with the first judge: its table of prices takes 0.2 s to load.
    from genai_prices import Usage, calc_price

    try:
        price = calc_price(
            Usage(
                # There, input means all that was read, cached tokens included; in `JudgeUsage`,
                # as on Anthropic's bills, each token is in one of the three figures.
                input_tokens=usage.input_tokens
                + usage.cache_read_tokens
                + usage.cache_write_tokens,
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                output_tokens=usage.output_tokens,
            ),
            model,
            provider_id=provider,
        )
    except LookupError:
        if model not in _unpriced:
            _unpriced.add(model)
            _LOG.warning("the price of model %s is not known; its cost is reported as None", model)
        return None
    return float(price.total_price)


def provider_at(base_url: str) -> str | None:
    """Provider at an address, by its name in price lists; None for your own server."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        return str(get_snapshot().find_provider(None, None, base_url).id)
    except LookupError:
        return None
