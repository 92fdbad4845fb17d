"""Sends spans, log records and metrics with the OpenTelemetry SDK, and prints the requests that it sent.

Usage: send.py grpc|http ENDPOINT none|gzip

The requests are in OTLP's JSON, made from the SDK's own messages by Google's protobuf library.
"""

import base64
import json
import logging
import sys

from google.protobuf.json_format import MessageToDict
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

HEX_FIELDS = {"traceId", "spanId", "parentSpanId"}
ATTRIBUTES = {
    "text": "Grüße, 世界 🚢",
    "empty": "",
    "true": True,
    "false": False,
    "zero": 0,
    "small": -(2**63),
    "large": 2**63 - 1,
    "ratio": 0.1,
    "tiny": 5e-324,
    "texts": ["a", "", "ü"],
    "numbers": [1, 2, 3],
    "ratios": [0.5, -1.5],
    "flags": [True, False],
}


def exporters(protocol, endpoint, compression):
    gzip = compression == "gzip"
    if protocol == "grpc":
        from grpc import Compression
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

        options = {"insecure": True, "compression": Compression.Gzip if gzip else Compression.NoCompression}
        return [kind(endpoint=endpoint, **options) for kind in (OTLPSpanExporter, OTLPLogExporter, OTLPMetricExporter)]
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    compression = Compression.Gzip if gzip else Compression.NoCompression
    kinds = {"traces": OTLPSpanExporter, "logs": OTLPLogExporter, "metrics": OTLPMetricExporter}
    return [kind(endpoint=f"{endpoint}/v1/{name}", compression=compression) for name, kind in kinds.items()]


def recording(exporter, encode, requests):
    """The exporter, which keeps what it sends and ends the program when that is not taken."""
    send = exporter.export

    def export(batch, *args, **kwargs):
        requests.append(otlp_json(MessageToDict(encode(batch), use_integers_for_enums=True)))
        result = send(batch, *args, **kwargs)
        if result.name != "SUCCESS":
            sys.exit(f"not taken: {result}")
        return result

    exporter.export = export
    return exporter


def otlp_json(value, key=None):
    """Protobuf's JSON has ids in base64, OTLP's in hexadecimal."""
    if isinstance(value, dict):
        return {name: otlp_json(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [otlp_json(inner) for inner in value]
    return base64.b64decode(value).hex() if key in HEX_FIELDS else value


def send_spans(provider):
    tracer = provider.get_tracer("shop", "1.2.3", schema_url="https://example.com/schema", attributes={"scope": "ü"})
    elsewhere = trace.SpanContext(0x1234567890ABCDEF1234567890ABCDEF, 0xFEDCBA0987654321, is_remote=True)
    with tracer.start_as_current_span("order", kind=trace.SpanKind.SERVER, attributes=ATTRIBUTES) as order:
        order.add_event("packed", {"boxes": 3, "fragile": True}, timestamp=1_700_000_000_123_456_789)
        order.add_link(elsewhere, {"why": "retry"})
        with tracer.start_as_current_span("pay", kind=trace.SpanKind.CLIENT) as pay:
            pay.record_exception(ValueError("no such card ✗"))
            pay.set_status(trace.Status(trace.StatusCode.ERROR, "declined: ✗"))
        for kind in (trace.SpanKind.PRODUCER, trace.SpanKind.CONSUMER, trace.SpanKind.INTERNAL):
            tracer.start_span(f"step {kind.name}", kind=kind, start_time=1).end(end_time=2**62)
        order.set_status(trace.StatusCode.OK)


def send_logs(provider, tracer_provider):
    logger = logging.getLogger("shop.till")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(LoggingHandler(logger_provider=provider))
    logger.propagate = False
    with tracer_provider.get_tracer("till").start_as_current_span("till"):
        logger.info("sold %s", "🍎", extra=dict(ATTRIBUTES))
    logger.error("out of apples")
    try:
        raise RuntimeError("the till is stuck")
    except RuntimeError:
        logger.exception("stuck")


def record_metrics(provider):
    meter = provider.get_meter("shop", "1.2.3")
    labels = {name: value for name, value in ATTRIBUTES.items() if not isinstance(value, list)}
    meter.create_counter("orders", unit="1", description="Orders ✓").add(3, labels)
    meter.create_counter("weight").add(1.25)
    meter.create_up_down_counter("open").add(-2)
    meter.create_gauge("temperature").set(-3.5, {"room": "cold"})
    histogram = meter.create_histogram("latency", unit="ms")
    exponential = meter.create_histogram("exponential")
    for value in (0.0, 0.3, 7.0, 12_000.0):
        histogram.record(value, {"route": "/pay"})
        exponential.record(value)
    exponential.record(1e-9)


def main():
    protocol, endpoint, compression = sys.argv[1:]
    spans, logs, metrics = exporters(protocol, endpoint, compression)
    sent = {"traces": [], "logs": [], "metrics": []}
    resource = Resource.create({"service.name": "shop ü", "replicas": 3, "zones": ["a", "b"]})

    tracing = TracerProvider(resource=resource)
    tracing.add_span_processor(BatchSpanProcessor(recording(spans, encode_spans, sent["traces"])))
    logging_ = LoggerProvider(resource=resource)
    logging_.add_log_record_processor(BatchLogRecordProcessor(recording(logs, encode_logs, sent["logs"])))
    reader = PeriodicExportingMetricReader(recording(metrics, encode_metrics, sent["metrics"]), 1e9)
    view = View(instrument_name="exponential", aggregation=ExponentialBucketHistogramAggregation())
    # Its shutdown would collect and send once more.
    metering = MeterProvider([reader], resource=resource, views=[view], shutdown_on_exit=False)

    send_spans(tracing)
    send_logs(logging_, tracing)
    record_metrics(metering)
    for provider in (tracing, logging_, metering):
        provider.force_flush()
    json.dump(sent, sys.stdout)
    sys.stdout.flush()
    for provider in (tracing, logging_):
        provider.shutdown()


main()
