"""Sends a trace with OpenCensus and its exporter for the agent, and prints the request that it sent.

Usage: opencensus_send.py HOST:PORT [CA_FILE]

The request is in protobuf's JSON, made from the exporter's own message by Google's protobuf library.
"""

import datetime
import json
import sys

import grpc
from google.protobuf.json_format import MessageToDict
from opencensus.ext.ocagent.trace_exporter import TraceExporter
from opencensus.proto.agent.trace.v1 import trace_service_pb2_grpc
from opencensus.trace.link import Link, Type as LinkType
from opencensus.trace.samplers import AlwaysOnSampler
from opencensus.trace.span import SpanKind
from opencensus.trace.status import Status
from opencensus.trace.time_event import MessageEvent, Type as MessageType
from opencensus.trace.tracer import Tracer


class Recording(TraceExporter):
    """The exporter, which keeps what it sends."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.requests = []

    def generate_span_requests(self, span_datas):
        for request in super().generate_span_requests(span_datas):
            self.requests.append(MessageToDict(request))
            yield request


def client(endpoint, ca_file):
    """The exporter has no setting for TLS, but takes a client."""
    with open(ca_file, "rb") as file:
        credentials = grpc.ssl_channel_credentials(file.read())
    return trace_service_pb2_grpc.TraceServiceStub(grpc.secure_channel(endpoint, credentials))


def main():
    endpoint, *ca_file = sys.argv[1:]
    own = client(endpoint, *ca_file) if ca_file else None
    exporter = Recording(service_name="shop ü", host_name="till-1", endpoint=endpoint, client=own)
    tracer = Tracer(sampler=AlwaysOnSampler(), exporter=exporter)
    with tracer.span(name="order") as order:
        order.span_kind = SpanKind.SERVER
        order.add_attribute("text", "Grüße, 世界 🚢")
        order.add_attribute("number", -7)
        order.add_attribute("flag", True)
        order.add_attribute("ratio", 0.1)
        order.add_annotation("packed", boxes=3, fragile=True)
        sent = datetime.datetime(2026, 1, 31, 12, 0, 0, 250000)
        order.add_message_event(MessageEvent(sent, 9, MessageType.SENT, 100, 50))
        order.add_link(Link("1234567890abcdef1234567890abcdef", "fedcba0987654321", LinkType.PARENT_LINKED_SPAN))
        with tracer.span(name="pay") as pay:
            pay.span_kind = SpanKind.CLIENT
            pay.set_status(Status(5, "no such card ✗"))
    json.dump(exporter.requests, sys.stdout)


main()
