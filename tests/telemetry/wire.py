"""What leaves the process, byte by byte, and as an independent receiver understands it."""

import asyncio
import contextlib
import http.client
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from oteltap import OtelTapHttpProtobufReceiver, OtelTapHttpProtobufReceiverSettings

from free_ports import free_port
from ragaliq import TelemetryOptions


class Wire(ThreadingHTTPServer):
    """Keeps every byte an exporter sends, then hands it to the receiver behind."""

    daemon_threads = True

    def __init__(self, receiver_port):
        self.receiver_port = receiver_port
        self.bodies = defaultdict(list)
        super().__init__(("127.0.0.1", 0), _Passing)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def spans(self, scope=None):
        """Spans as sent, of one instrumentation scope."""
        return [
            span
            for request in map(ExportTraceServiceRequest.FromString, self.bodies["/v1/traces"])
            for resource in request.resource_spans
            for scoped in resource.scope_spans
            if scope in (None, scoped.scope.name)
            for span in scoped.spans
        ]

    def events(self):
        return [
            record
            for request in map(ExportLogsServiceRequest.FromString, self.bodies["/v1/logs"])
            for resource in request.resource_logs
            for scoped in resource.scope_logs
            if scoped.scope.name == "ragaliq"
            for record in scoped.log_records
        ]

    def own_bytes(self):
        """Every byte that ragaliq sent: its spans, and all events and metrics."""
        spans = b"".join(span.SerializeToString() for span in self.spans("ragaliq"))
        return spans + b"".join(self.bodies["/v1/logs"] + self.bodies["/v1/metrics"])


class _Passing(BaseHTTPRequestHandler):
    server: Wire

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.bodies[self.path].append(body)
        behind = http.client.HTTPConnection("127.0.0.1", self.server.receiver_port, timeout=20)
        with contextlib.closing(behind):
            kind = {"content-type": self.headers["content-type"]}
            behind.request("POST", self.path, body, kind)
            reply = behind.getresponse()
            content = reply.read()
        self.send_response(reply.status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


class Received:
    """Everything that oteltap understood."""

    def __init__(self):
        self.spans, self.events, self.metrics = [], [], []

    async def until(self, what, number):
        async with asyncio.timeout(30):
            while len(getattr(self, what)) < number:  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(0.01)
        return getattr(self, what)


@contextlib.asynccontextmanager
async def listening():
    """An oteltap receiver with the wire in front of it, and what it received."""
    port = free_port()
    settings = OtelTapHttpProtobufReceiverSettings(http_port=port)
    async with OtelTapHttpProtobufReceiver(settings) as tap:
        received = Received()

        async def keep(stream, into):
            async for message in stream:
                into.append(message)

        tasks = [
            asyncio.create_task(keep(tap.stream_traces(), received.spans)),
            asyncio.create_task(keep(tap.stream_logs(), received.events)),
            asyncio.create_task(keep(tap.stream_metrics(), received.metrics)),
        ]
        await asyncio.sleep(0)
        wire = Wire(port)
        yield wire, received
        wire.shutdown()
        wire.server_close()
        for task in tasks:
            task.cancel()


class Sdk:
    """An application's SDK that exports to `url`."""

    def __init__(self, url):
        resource = Resource.create({"service.name": "shop", "deployment.environment.name": "test"})
        self.tracer_provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.tracer_provider.add_span_processor(
            BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces"), max_queue_size=20_000)
        )
        self.logger_provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
        self.logger_provider.add_log_record_processor(
            BatchLogRecordProcessor(OTLPLogExporter(f"{url}/v1/logs"), max_queue_size=20_000)
        )
        reader = PeriodicExportingMetricReader(
            OTLPMetricExporter(f"{url}/v1/metrics"), export_interval_millis=float("inf")
        )
        self.meter_provider = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        self.tracer = self.tracer_provider.get_tracer("application")

    @property
    def options(self):
        return TelemetryOptions(
            tracer_provider=self.tracer_provider,
            logger_provider=self.logger_provider,
            meter_provider=self.meter_provider,
        )

    def close(self):
        self.meter_provider.force_flush()
        self.tracer_provider.shutdown()
        self.logger_provider.shutdown()
        self.meter_provider.shutdown()


def values(attributes):
    """Attributes as plain values."""

    def plain(value):
        kind = value.WhichOneof("value")
        if kind == "array_value":
            return [plain(item) for item in value.array_value.values]
        return getattr(value, kind)

    return {item.key: plain(item.value) for item in attributes}
