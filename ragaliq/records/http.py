"""Base of the sinks of products: HTTP requests, retries by status, and facts of a score."""

from __future__ import annotations

import asyncio
import email.utils
import json
import os
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from ssl import SSLContext
from typing import Any, ClassVar
from urllib.parse import urlsplit

import httpx2

from ragaliq.core.proxies import proxy_errors, untrusted_certificate
from ragaliq.errors import ConfigurationError
from ragaliq.judges.clients import LoopClients
from ragaliq.records.record import EvaluationRecord, SinkError

NO_SPAN = (
    "the run's span is not known, so its results have no place there; run the application inside a "
    "span of OpenTelemetry's tracer"
)
_UNAUTHORIZED = (401, 403)
# Client errors worth a retry: time-out, too early, too many requests.
_PASSING = (408, 425, 429)
_TIMEOUT = httpx2.Timeout(10.0, connect=5.0)
_LONGEST = 30.0  # seconds for a whole reply, which may come in small parts
_MOST_BYTES = 10 * 2**20


@cache
def _certificates() -> SSLContext:
    # Reading the certificates takes a tenth of a second for each client.
    return httpx2.create_ssl_context()


class _SinkClient(httpx2.AsyncClient):
    """HTTP client of a sink, with `close` for `LoopClients`, which closes clients by that name.

    `LoopClients` keeps one client for each event loop, as a connection belongs to its loop.
    """

    async def close(self) -> None:
        await self.aclose()


class ProductSink(ABC):
    """Sink that sends records to a product's API; its `repr` shows no key.

    Args:
        product: Its name, for messages.
        endpoint: Its address, without user and password.
        headers: Sent with each request.
        auth: A user and password.
    """

    many: ClassVar = False
    """Whether one request takes several records."""
    needs_span: ClassVar = True
    """True if the product keeps scores on spans, so that cases without them have no place."""

    def __init__(
        self,
        product: str,
        endpoint: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
    ) -> None:
        self._product, self.endpoint = product, endpoint
        self._headers, self._auth = headers, auth
        self._clients: LoopClients[_SinkClient] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.endpoint!r})"

    async def write(self, records: Sequence[EvaluationRecord]) -> None:
        """Send the records' scores; a refused record does not stop the others."""
        if self.many:
            try:
                await self._send(records)
            except SinkError as error:
                if error.kind not in _OF_SOME_RECORDS or len(records) == 1:
                    raise
            else:
                return
        undelivered: list[EvaluationRecord] = []
        worst: SinkError | None = None
        for position, record in enumerate(records):
            try:
                await self._send([record])
            except SinkError as error:
                if error.kind not in _OF_ONE_RECORD:
                    # A failure of the receiver: ask a dead one once, not for each record.
                    undelivered.extend(records[position:])
                    worst = error
                    break
                undelivered.append(record)
                # A temporary error is retried, so it decides if both kinds occur.
                worst = error if worst is None or worst.permanent else worst
        if worst is not None:
            raise SinkError(
                str(worst),
                kind=worst.kind,
                permanent=worst.permanent,
                retry_after=worst.retry_after,
                undelivered=undelivered,
            )

    def passes_over(self, record: EvaluationRecord) -> str:
        """Reason to skip a record: its run's span is not known."""
        return "" if record.run.target else NO_SPAN

    async def aclose(self) -> None:
        """Close the running loop's connections."""
        if self._clients is not None:
            await self._clients.aclose()

    @abstractmethod
    async def _send(self, records: Sequence[EvaluationRecord]) -> None:
        """Send the scores of one record, or of several where the product takes `many`."""

    async def ask(self, method: str, path: str, **options: Any) -> Any:
        """Send a request; return its JSON reply, None if the reply is not JSON."""
        if self._clients is None:
            await asyncio.to_thread(_certificates)  # their files are not read on an event loop
            self._clients = self._clients or LoopClients(self._new_client, self._new_client())
        client = await self._clients.get()
        body = b""
        try:
            async with (
                asyncio.timeout(_LONGEST),
                client.stream(method, path, **options) as response,
            ):
                async for part in response.aiter_raw():
                    body += part
                    if len(body) > _MOST_BYTES:
                        raise self._error(f"answered more than {_MOST_BYTES} bytes", "http")
        except (httpx2.TimeoutException, TimeoutError) as error:
            raise self._error("did not answer in time", "timeout") from error
        except httpx2.TransportError as error:
            reason = untrusted_certificate(error) or "cannot be reached"
            raise self._error(reason, "unreachable") from error
        except httpx2.HTTPError as error:
            raise self._error(f"gave no usable answer ({type(error).__name__})", "http") from error
        if response.is_success:
            try:
                return json.loads(body)
            except (ValueError, RecursionError):
                return None
        status = response.status_code
        # The reply is not quoted: it may repeat the request or a key.
        what = f"answered {status}"
        if status in _UNAUTHORIZED:
            what = f"refused the key ({status})"
        elif response.is_redirect:
            what = f"redirects elsewhere ({status}), which is not followed: give that address"
        elif status == 404:
            what = "does not know the span, the trace or the address (404)"
        raise self._error(
            what,
            f"http_{status}",
            # A 404 may pass: spans are exported later than results are known.
            permanent=400 <= status < 500 and status not in (*_PASSING, 404),
            retry_after=_retry_after(response),
        )

    def _error(
        self, what: str, kind: str, *, permanent: bool = False, retry_after: float | None = None
    ) -> SinkError:
        return SinkError(
            f"{self._product} at {self.endpoint} {what}",
            kind=kind,
            permanent=permanent,
            retry_after=retry_after,
        )

    def _new_client(self) -> _SinkClient:
        with proxy_errors():
            return _SinkClient(
                base_url=self.endpoint,
                # Uncompressed: a small compressed reply can be a huge one.
                headers={**(self._headers or {}), "accept-encoding": "identity"},
                auth=self._auth,
                timeout=_TIMEOUT,
                verify=_certificates(),
            )


# Errors that may be the fault of a few records of a batch: these are sent again one by one.
_OF_SOME_RECORDS = ("http_400", "http_413", "http_422", "rejected")
# Errors of a single record, after which the next one is sent; any other is the receiver's.
_OF_ONE_RECORD = (*_OF_SOME_RECORDS, "http_404", "http_409")


def endpoint_of(product: str, explicit: str | None, variables: Mapping[str, str]) -> str:
    """Address from the argument, else from the first variable that is set, else the default.

    Args:
        product: For the message.
        explicit: The argument.
        variables: Environment variables in order of precedence, each with its default: an empty
            string to try the next one, or the default address.
    """
    candidates = [explicit, *(os.environ.get(name) or value for name, value in variables.items())]
    chosen = next((candidate for candidate in candidates if candidate), "")
    parts = urlsplit(chosen)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(
            f"{product}: give its address as http(s)://host, or set {' or '.join(variables)}"
        )
    if parts.username or parts.password:
        raise ConfigurationError(f"{product}: a key belongs into its own argument, not the address")
    return chosen.rstrip("/")


def _retry_after(response: httpx2.Response) -> float | None:
    value = response.headers.get("retry-after", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def entry_id(record: EvaluationRecord, metric: str) -> str:
    """Id of a metric's score where the product keeps one score for each id.

    A job that is delivered twice may fail the second time: a failure has an id of its own and
    never replaces a score.
    """
    metric_id = record.metric_id(metric)
    return metric_id if record.results[metric].score is not None else f"{metric_id}-status"


def metric_facts(record: EvaluationRecord, metric: str) -> dict[str, str | float]:
    """Numbers and names that accompany a score; never texts."""
    result = record.results[metric]
    verdicts = Counter(claim.verdict or "UNVERIFIED" for claim in result.claims)
    facts: dict[str, str | float | None] = {
        "ragaliq.status": result.status.value,
        "ragaliq.threshold": result.threshold,
        "ragaliq.good_scores": "high" if result.higher_is_better else "low",
        "ragaliq.judge": result.judge,
        "ragaliq.model": result.model,
        "ragaliq.judge.calibration": result.calibration,
        "ragaliq.evaluator.fingerprint": result.fingerprint,
        "ragaliq.version": record.version,
        "ragaliq.error_type": result.error_type,
        "ragaliq.run_id": record.run.run_id,
        "ragaliq.pipeline": record.run.pipeline,
        "ragaliq.sampling.probability": record.run.sampling_probability,
        "ragaliq.evaluation_id": record.evaluation_id,
        "ragaliq.metric_id": record.metric_id(metric),
        **{f"ragaliq.claims.{verdict.lower()}": n for verdict, n in verdicts.items()},
    }
    return {name: value for name, value in facts.items() if value not in (None, "")}
