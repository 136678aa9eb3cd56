"""`ragaliq collect`: score the answers of applications that send their traces."""

from __future__ import annotations

import logging
import signal
from pathlib import Path
from typing import Annotated

import typer

from ragaliq.cli.console import ExitCode
from ragaliq.cli.options import (
    BaseUrl,
    CalibrationFile,
    Judge,
    MappingFile,
    Metrics,
    Model,
    Resolve,
    choose_judge,
    imported,
    named_metrics,
)
from ragaliq.errors import ConfigurationError
from ragaliq.live.monitor import Monitor
from ragaliq.scoring.limits.budget import Budget
from ragaliq.traces import read_mapping

_EXIT_SECONDS = 20.0


def collect(
    *,
    listen: Annotated[
        str, typer.Option(help="Address and port to listen on.", metavar="HOST:PORT")
    ] = "127.0.0.1:4318",
    forward: Annotated[
        str | None,
        typer.Option(
            help="OTLP address that evaluation spans, events and metrics go to, such as "
            "http://collector:4318.",
            metavar="URL",
        ),
    ] = None,
    sample_rate: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, help="Share of traces to evaluate, by trace id."),
    ] = None,
    judge: Judge = None,
    model: Model = None,
    base_url: BaseUrl = None,
    calibration: CalibrationFile = None,
    metrics: Metrics = None,
    max_usd_per_day: Annotated[
        float | None,
        typer.Option(help="Most US dollars for the judge in a day, of each process and start."),
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(
            help="Enqueue runs for `ragaliq worker` instead of judging here: redis://, amqp://, "
            "nats:// or kafka://; judge and sinks are then set there.",
            metavar="URL",
        ),
    ] = None,
    sink: Annotated[
        list[str] | None,
        typer.Option(help="Where to store results, such as sqlite:///path; repeatable."),
    ] = None,
    app: Annotated[
        str | None,
        typer.Option(help="module:name of a Monitor, or of a function that makes one, instead."),
    ] = None,
    mapping: MappingFile = None,
    resolve: Resolve = None,
    spool: Annotated[
        Path | None,
        typer.Option(
            help="Folder for requests that are not settled: a restart, or a killed process, then "
            "loses only what was not answered with 200."
        ),
    ] = None,
    quiet: Annotated[
        float,
        typer.Option(min=0.1, help="Seconds without a span after which a trace is read."),
    ] = 30.0,
    grace: Annotated[
        float, typer.Option(min=0.1, help="Seconds to wait for late spans of a whole trace.")
    ] = 2.0,
) -> int:
    """Receive traces by OTLP and score their answers. Runs until SIGTERM."""
    import uvicorn

    from ragaliq.collect.assembly import Assembly
    from ragaliq.collect.server import collector_app
    from ragaliq.collect.spool import Spool

    host, port = _address(listen)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    if forward is not None:
        _forward_to(forward, host, port)
    if app is not None:
        monitor = _monitor_of(app)
    else:
        chosen = None
        if judge or model or base_url or calibration:
            chosen = choose_judge(
                judge, model=model, base_url=base_url, calibration=calibration
            ).judge
        monitor = Monitor(
            judge=chosen,
            metrics=None if metrics is None else named_metrics(metrics),
            sample_rate=sample_rate,
            executor=executor,
            budget=None if max_usd_per_day is None else Budget(usd_per_day=max_usd_per_day),
            sinks=sink or (),
            exit_timeout=_EXIT_SECONDS,
        )
    kept = None if spool is None else Spool(spool)
    assembly = Assembly(
        monitor,
        mapping=() if mapping is None else read_mapping(mapping),
        resolve=None if resolve is None else imported("--resolve", resolve),
        grace=grace,
        quiet=quiet,
        on_settled=None if kept is None else kept.settled,
    )
    server = uvicorn.Server(
        uvicorn.Config(
            collector_app(monitor, assembly, spool=kept),
            host=host,
            port=port,
            log_level="warning",
            access_log=False,
            limit_concurrency=1000,
            timeout_graceful_shutdown=5,
        )
    )
    logging.getLogger(__name__).info("listening on %s:%s", host, port)
    # uvicorn raises what it stopped for once more; runs in the queue are judged after that.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _go_on)
    server.run()
    monitor.close(_EXIT_SECONDS)
    if kept is not None:
        kept.close()
    return ExitCode.OK if server.started else ExitCode.DATA


def _go_on(_number: int, _frame: object) -> None:
    """Handle a signal by nothing."""


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise ConfigurationError(f"--listen {listen}: give an address and a port, 127.0.0.1:4318")
    return host.strip("[]"), int(port)


def _forward_to(forward: str, host: str, port: int) -> None:
    from ragaliq.telemetry import configure

    own = {f"http://{name}:{port}" for name in (host, "localhost", "127.0.0.1", "[::1]")}
    if forward.rstrip("/").lower() in own:
        raise ConfigurationError(
            f"--forward {forward}: that is this process; results must not come back to it"
        )
    if not forward.startswith(("http://", "https://")):
        raise ConfigurationError(f"--forward {forward}: begin it with http:// or https://")
    configure(endpoint=forward, service_name="ragaliq-collect")


def _monitor_of(spec: str) -> Monitor:
    found = imported("--app", spec)
    made = found() if callable(found) and not isinstance(found, Monitor) else found
    if not isinstance(made, Monitor):
        raise ConfigurationError(f"--app {spec}: it is not a Monitor and makes none")
    return made
