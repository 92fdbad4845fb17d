use std::{collections::BTreeMap, time::Duration};

use kubewake_config::{ComponentId, PipelineId};
use kubewake_otlp::Signal;

use super::*;
use crate::core::{Budget, Code, DestinationLabels, EarlyDecision, SamplingOutcome, Transport};

fn pipeline(signal: Signal, name: Option<&str>) -> PipelineId {
    PipelineId { signal, name: name.map(Into::into) }
}

fn backend() -> DestinationLabels {
    DestinationLabels { address: "127.0.0.1".into(), port: "25317".into(), path: String::new() }
}

fn page(registry: &StatsRegistry, level: MetricsLevel) -> String {
    render(registry, &ProcessInfo::default(), level)
}

/// The rows of the page whose name begins with `prefix`, without help and types.
fn rows(registry: &StatsRegistry, level: MetricsLevel, prefix: &str) -> Vec<String> {
    let page = page(registry, level);
    page.lines().filter(|line| line.starts_with(prefix)).map(str::to_owned).collect()
}

#[test]
fn a_receiver_has_the_collectors_rows() {
    let registry = StatsRegistry::default();
    registry.pipeline(&pipeline(Signal::Traces, None));
    let stats = registry.receiver(&ComponentId::new("otlp"), Transport::Grpc);
    stats.accepted().add(Signal::Traces, 3);
    let page = page(&registry, MetricsLevel::Normal);
    let golden = "\
# HELP otelcol_receiver_accepted_spans Number of spans successfully pushed into the pipeline. [Alpha]
# TYPE otelcol_receiver_accepted_spans counter
otelcol_receiver_accepted_spans{receiver=\"otlp\",transport=\"grpc\"} 3
# HELP otelcol_receiver_failed_spans The number of spans that failed to be processed by the receiver due to internal errors. [Alpha]
# TYPE otelcol_receiver_failed_spans counter
otelcol_receiver_failed_spans{receiver=\"otlp\",transport=\"grpc\"} 0
# HELP otelcol_receiver_refused_spans Number of spans that could not be pushed into the pipeline. [Alpha]
# TYPE otelcol_receiver_refused_spans counter
otelcol_receiver_refused_spans{receiver=\"otlp\",transport=\"grpc\"} 0
";
    assert!(page.contains(golden), "{page}");
    assert!(!page.contains("log_records"), "no pipeline carries logs:\n{page}");
}

#[test]
fn a_signal_without_a_pipeline_shows_once_somebody_sends_it() {
    let registry = StatsRegistry::default();
    registry.receiver(&ComponentId::new("otlp"), Transport::Http).failed().add(Signal::Logs, 2);
    let name = "otelcol_receiver_failed_log_records";
    assert_eq!(
        rows(&registry, MetricsLevel::Basic, name),
        [format!("{name}{{receiver=\"otlp\",transport=\"http\"}} 2")]
    );
}

#[test]
fn an_exporter_with_a_queue_has_the_rows_of_a_recorded_collector() {
    let registry = StatsRegistry::default();
    let id = ComponentId::new("otlp");
    let stats = registry.exporter(&id, &pipeline(Signal::Traces, None), backend());
    stats.sent.store(3, Ordering::Relaxed);
    stats.queue_capacity.store(10, Ordering::Relaxed);
    let expected = [
        r#"otelcol_exporter_enqueue_failed_spans{exporter="otlp"} 0"#,
        r#"otelcol_exporter_in_flight_requests{data_type="traces",exporter="otlp"} 0"#,
        r#"otelcol_exporter_queue_capacity{data_type="traces",exporter="otlp"} 10"#,
        r#"otelcol_exporter_queue_size{data_type="traces",exporter="otlp"} 0"#,
        r#"otelcol_exporter_send_failed_spans{exporter="otlp",server_address="127.0.0.1",server_port="25317"} 0"#,
        r#"otelcol_exporter_sent_spans{exporter="otlp",server_address="127.0.0.1",server_port="25317"} 3"#,
    ];
    assert_eq!(rows(&registry, MetricsLevel::Basic, "otelcol_exporter"), expected);
}

#[test]
fn without_a_queue_its_gauges_are_absent_and_an_url_shows_its_path() {
    let registry = StatsRegistry::default();
    let to = DestinationLabels { path: "/v1/traces".into(), ..backend() };
    registry.exporter(&ComponentId::new("otlphttp"), &pipeline(Signal::Traces, None), to);
    let rows = rows(&registry, MetricsLevel::Detailed, "otelcol_exporter");
    assert!(rows.iter().all(|row| !row.contains("exporter_queue_")), "{rows:#?}");
    let labels = r#"exporter="otlphttp",server_address="127.0.0.1",server_port="25317",url_path="/v1/traces""#;
    assert!(rows.contains(&format!("otelcol_exporter_sent_spans{{{labels}}} 0")), "{rows:#?}");
}

#[test]
fn an_exporter_of_several_pipelines_is_one_row() {
    let registry = StatsRegistry::default();
    for (name, sent) in [("a", 3), ("b", 4)] {
        let stats = registry.exporter(&ComponentId::new("otlp"), &pipeline(Signal::Logs, Some(name)), backend());
        stats.sent.store(sent, Ordering::Relaxed);
        stats.queue_capacity.store(1000, Ordering::Relaxed);
        stats.batch_items.record(sent);
    }
    let all = rows(&registry, MetricsLevel::Normal, "otelcol_exporter");
    let row = r#"otelcol_exporter_sent_log_records{exporter="otlp",server_address="127.0.0.1",server_port="25317"} 7"#;
    assert!(all.contains(&row.to_owned()), "{all:#?}");
    let row = r#"otelcol_exporter_queue_capacity{data_type="logs",exporter="otlp"} 2000"#;
    assert!(all.contains(&row.to_owned()), "{all:#?}");
    let row = r#"otelcol_exporter_queue_batch_send_size_sum{exporter="otlp"} 7"#;
    assert!(all.contains(&row.to_owned()), "{all:#?}");
}

#[test]
fn the_batch_processor_has_histograms_with_the_collectors_bounds() {
    let registry = StatsRegistry::default();
    let stats = registry.processor(&ComponentId::new("batch/x"), Signal::Traces);
    stats.batch_items.record(30);
    stats.batch_items.record(200_000);
    stats.batch_bytes.record(873);
    let name = "otelcol_processor_batch_batch_send_size";
    let sizes = rows(&registry, MetricsLevel::Normal, name);
    assert_eq!(sizes.len(), 22 + 3, "{sizes:#?}");
    assert_eq!(sizes[1], format!("{name}_bucket{{processor=\"batch/x\",le=\"25\"}} 0"));
    assert_eq!(sizes[2], format!("{name}_bucket{{processor=\"batch/x\",le=\"50\"}} 1"));
    assert_eq!(sizes[22], format!("{name}_bucket{{processor=\"batch/x\",le=\"+Inf\"}} 2"));
    assert_eq!(sizes[23], format!("{name}_sum{{processor=\"batch/x\"}} 200030"));
    assert_eq!(sizes[24], format!("{name}_count{{processor=\"batch/x\"}} 2"));
    let bytes = rows(&registry, MetricsLevel::Detailed, "otelcol_processor_batch_batch_send_size_bytes");
    assert_eq!(bytes.len(), 39 + 3, "{bytes:#?}");
    assert!(bytes[30].contains(r#"le="1e+06"} 1"#), "{bytes:#?}");
}

#[test]
fn the_memory_limiter_counts_what_it_let_through() {
    let registry = StatsRegistry::default();
    let id = ComponentId::new("memory_limiter");
    let stats = registry.processor(&id, Signal::Metrics);
    stats.incoming.store(5, Ordering::Relaxed);
    stats.outgoing.store(3, Ordering::Relaxed);
    stats.refused.store(2, Ordering::Relaxed);
    let budget = Budget::new(1 << 20, 0);
    registry.watch_budget(&id, &budget);
    let expected = [
        r#"otelcol_processor_incoming_items{otel_signal="metrics",processor="memory_limiter"} 5"#,
        r#"otelcol_processor_memory_limiter_accepted_metric_points{processor="memory_limiter"} 3"#,
        r#"otelcol_processor_memory_limiter_refused_metric_points{processor="memory_limiter"} 2"#,
        r#"otelcol_processor_outgoing_items{otel_signal="metrics",processor="memory_limiter"} 3"#,
    ];
    assert_eq!(rows(&registry, MetricsLevel::Normal, "otelcol_processor"), expected);
    let memory = [
        r#"kubewake_memory_limit_bytes{limiter="memory_limiter"} 1048576"#,
        r#"kubewake_memory_used_bytes{limiter="memory_limiter"} 0"#,
    ];
    assert_eq!(rows(&registry, MetricsLevel::Normal, "kubewake_memory"), memory);
    drop(budget);
    assert!(rows(&registry, MetricsLevel::Normal, "kubewake_memory").is_empty());
}

#[test]
fn losses_are_told_apart_by_reason() {
    let registry = StatsRegistry::default();
    let stats = registry.pipeline(&pipeline(Signal::Traces, Some("eu")));
    stats.count_received(9);
    stats.count_dropped(DropReason::QueueFull, 4);
    registry.reloads_refused.store(1, Ordering::Relaxed);
    let all = rows(&registry, MetricsLevel::Normal, "kubewake_");
    for row in [
        r#"kubewake_config_reloads{result="applied"} 0"#,
        r#"kubewake_config_reloads{result="refused"} 1"#,
        r#"kubewake_pipeline_delivered_items{pipeline="traces/eu"} 0"#,
        r#"kubewake_pipeline_dropped_items{pipeline="traces/eu",reason="queue_full"} 4"#,
        r#"kubewake_pipeline_dropped_items{pipeline="traces/eu",reason="refused"} 0"#,
        r#"kubewake_pipeline_received_items{pipeline="traces/eu"} 9"#,
    ] {
        assert!(all.contains(&row.to_owned()), "{row} in {all:#?}");
    }
}

#[test]
fn the_process_describes_itself() {
    let process = ProcessInfo {
        attributes: BTreeMap::from([
            ("service.name".into(), "kube\"wake\\\n".into()),
            ("service.version".into(), "1.0".into()),
            ("9lives".into(), "yes".into()),
        ]),
        uptime: Duration::from_millis(8527),
        cpu_seconds: Some(0.07),
        memory_rss: Some(48_254_976),
    };
    let page = render(&StatsRegistry::default(), &process, MetricsLevel::Basic);
    for row in [
        "otelcol_process_uptime 8.527",
        "otelcol_process_cpu_seconds 0.07",
        "otelcol_process_memory_rss 48254976",
        r#"target_info{_9lives="yes",service_name="kube\"wake\\\n",service_version="1.0"} 1"#,
    ] {
        assert!(page.lines().any(|line| line == row), "{row} in\n{page}");
    }
}

#[test]
fn nothing_is_shown_at_level_none() {
    let registry = StatsRegistry::default();
    registry.pipeline(&pipeline(Signal::Traces, None));
    assert_eq!(page(&registry, MetricsLevel::None), "");
}

#[test]
fn every_family_is_named_once_and_in_order() {
    let registry = StatsRegistry::default();
    for signal in Signal::ALL {
        registry.pipeline(&pipeline(signal, None));
        registry.exporter(&ComponentId::new("otlp"), &pipeline(signal, None), backend());
        registry.processor(&ComponentId::new("batch"), signal);
    }
    registry.receiver(&ComponentId::new("otlp"), Transport::Grpc);
    let page = page(&registry, MetricsLevel::Detailed);
    let names: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    assert!(names.len() > 20 && names.is_sorted_by(|a, b| a < b), "{names:#?}");
}

#[test]
fn calls_have_the_rows_of_a_recorded_collector() {
    let registry = StatsRegistry::default();
    let stats = registry.receiver(&ComponentId::new("otlp"), Transport::Grpc);
    stats.calls(Signal::Traces).record(Code::Ok, Duration::from_nanos(1500));
    stats.calls(Signal::Traces).record(Code::Ok, Duration::from_millis(300));
    stats.calls(Signal::Traces).record(Code::Ok, Duration::from_secs(60));
    let labels = r#"rpc_method="opentelemetry.proto.collector.trace.v1.TraceService/Export",rpc_response_status_code="OK",rpc_system_name="grpc""#;
    let rows = |level| rows(&registry, level, "rpc_server_call_duration");
    let detailed = rows(MetricsLevel::Detailed);
    for (at, row) in [
        (0, format!("_bucket{{{labels},le=\"0.005\"}} 1")),
        (7, format!("_bucket{{{labels},le=\"0.5\"}} 2")),
        (13, format!("_bucket{{{labels},le=\"10\"}} 2")),
        (14, format!("_bucket{{{labels},le=\"+Inf\"}} 3")),
        (15, format!("_sum{{{labels}}} 60.3000015")),
        (16, format!("_count{{{labels}}} 3")),
    ] {
        assert_eq!(detailed[at], format!("rpc_server_call_duration{row}"));
    }
    assert!(rows(MetricsLevel::Normal).is_empty());

    let id = ComponentId::new("otlp/x");
    let stats = registry.exporter(&id, &pipeline(Signal::Logs, None), backend());
    stats.calls.record(Code::Unavailable, Duration::from_millis(5));
    let page = page(&registry, MetricsLevel::Detailed);
    let labels = r#"rpc_method="opentelemetry.proto.collector.logs.v1.LogsService/Export",rpc_response_status_code="UNAVAILABLE",rpc_system_name="grpc""#;
    assert!(page.contains(&format!("rpc_client_call_duration_bucket{{{labels},le=\"0.005\"}} 1")), "{page}");
}

#[test]
fn a_tail_sampler_has_the_rows_of_the_collectors_contributions() {
    let registry = StatsRegistry::default();
    let stats = registry.sampler(&ComponentId::new("tail_sampling/shop"));
    let policy = stats.policy("errors");
    policy.count(SamplingOutcome::Sampled, 10, 1000);
    policy.count(SamplingOutcome::NotSampled, 3, 300);
    policy.count(SamplingOutcome::Dropped, 2, 200);
    stats.count_decision(SamplingOutcome::Dropped);
    stats.count_early_decision(EarlyDecision::Overload);
    stats.overloaded.store(1, Ordering::Relaxed);
    stats.promoted.store(4, Ordering::Relaxed);
    let rows = rows(&registry, MetricsLevel::Basic, "");
    let (of_processor, of_policy) = (r#"processor="tail_sampling/shop""#, r#"policy="shop.errors""#);
    let names = "otelcol_processor_tail_sampling";
    for (outcome, sampled, traces, spans, bytes) in
        [("sampled", "true", 1, 10, 1000), ("not_sampled", "false", 1, 3, 300), ("dropped", "false", 1, 2, 200)]
    {
        let labels = format!(r#"{{decision="{outcome}",{of_policy},{of_processor},sampled="{sampled}"}}"#);
        for (unit, count) in [("traces", traces), ("spans", spans), ("bytes", bytes)] {
            let row = format!("{names}_count_{unit}_sampled{labels} {count}");
            assert!(rows.contains(&row), "{row}\n{rows:#?}");
        }
    }
    for row in [
        format!("{names}_sampling_policy_execution_count{{{of_policy},{of_processor}}} 3"),
        format!(r#"{names}_global_count_traces_sampled{{decision="dropped",{of_processor},sampled="false"}} 1"#),
        format!(r#"{names}_early_releases_from_cache_decision{{{of_processor},sampled="true"}} 0"#),
        format!("{names}_sampling_trace_dropped_too_early{{{of_processor}}} 0"),
        format!(r#"kubewake_tail_sampling_early_decisions{{{of_processor},reason="overload"}} 1"#),
        format!("kubewake_tail_sampling_overloaded{{{of_processor}}} 1"),
        format!("kubewake_tail_sampling_promoted_traces{{{of_processor}}} 4"),
    ] {
        assert!(rows.contains(&row), "{row}\n{rows:#?}");
    }
}
