//! Durations of gRPC calls, in and out, as OpenTelemetry's instrumentation of gRPC names them.

use kubewake_otlp::Signal;

use super::metrics_page::{HistogramSnapshot, MetricsPage};
use crate::core::{CallSnapshot, CallStats, StatsRegistry, Transport};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

pub(super) fn write_metrics(page: &mut MetricsPage, registry: &StatsRegistry) {
    for ((_, transport), stats) in registry.receivers() {
        for signal in Signal::ALL.into_iter().filter(|_| transport == Transport::Grpc) {
            let help = "Measures the duration of an incoming Remote Procedure Call (RPC).";
            write_histograms(page, "rpc_server_call_duration", help, signal, stats.calls(signal));
        }
    }
    for ((id, pipeline, _), stats) in registry.exporters() {
        if matches!(id.kind(), "otlp" | "otlp_grpc" | "load_balancing" | "loadbalancing") {
            let help = "Measures the duration of an outgoing Remote Procedure Call (RPC).";
            write_histograms(page, "rpc_client_call_duration", help, pipeline.signal, &stats.calls);
        }
    }
}

fn write_histograms(page: &mut MetricsPage, name: &str, help: &str, signal: Signal, calls: &CallStats) {
    for CallSnapshot { code, rows, nanoseconds, count } in calls.snapshot() {
        let labels =
            [("rpc_method", method(signal)), ("rpc_response_status_code", code.name()), ("rpc_system_name", "grpc")];
        page.histogram(
            name,
            help,
            &labels,
            HistogramSnapshot { rows, sum: nanoseconds, count, unit: NANOS_PER_SECOND },
        );
    }
}

fn method(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "opentelemetry.proto.collector.trace.v1.TraceService/Export",
        Signal::Metrics => "opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        Signal::Logs => "opentelemetry.proto.collector.logs.v1.LogsService/Export",
    }
}
