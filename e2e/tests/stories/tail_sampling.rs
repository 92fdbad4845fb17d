//! Whole traces wait for their decision.

use kubewake_e2e::{CollectorProcess, ConfigBuilder, LoadGenerator, SinkProcess, curl, wait_until};
use kubewake_otlp::Signal;
use serde_json::Value;

const ERRORS: &str = "{name: errors, type: status_code, status_code: {status_codes: [ERROR]}}";

fn sampling(sink: &SinkProcess, settings: &str) -> ConfigBuilder {
    let config = ConfigBuilder::new().processor("tail_sampling", settings);
    let retry = format!(
        "{{endpoint: \"{}\", tls: {{insecure: true}}, timeout: 1s, retry_on_failure: {{initial_interval: 50ms, max_interval: 200ms}}}}",
        sink.address()
    );
    config.exporter("otlp", retry).pipeline("traces", "tail_sampling", "otlp")
}

/// A request of spans, each of a trace and with a status code.
fn send(collector: &CollectorProcess, spans: &[(u32, u32)]) {
    let span = |(trace, code): &(u32, u32)| {
        format!(r#"{{"traceId": "{trace:032x}", "spanId": "{trace:016x}", "status": {{"code": {code}}}}}"#)
    };
    let spans: Vec<String> = spans.iter().map(span).collect();
    let body = format!(r#"{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{}]}}]}}]}}"#, spans.join(","));
    let url = format!("http://{}/v1/traces", collector.http());
    let args = ["-H", "content-type: application/json", "--data-binary", "@-", &url];
    assert_eq!(curl(args, body.as_bytes()).unwrap().status, 200);
}

/// The traces that arrived, a number for each span.
fn arrived(sink: &SinkProcess) -> Vec<u32> {
    let requests = sink.received(Signal::Traces);
    let each = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let resources = requests.iter().flat_map(|request| each(request, "resourceSpans"));
    let scopes = resources.flat_map(|resource| each(&resource, "scopeSpans"));
    let spans = scopes.flat_map(|scope| each(&scope, "spans"));
    let mut traces: Vec<u32> =
        spans.map(|span| u32::from_str_radix(&span["traceId"].as_str().unwrap()[24..], 16).unwrap()).collect();
    traces.sort();
    traces
}

#[test]
fn a_trace_with_an_error_arrives_whole_and_the_rest_does_not() {
    let sink = SinkProcess::start();
    let collector =
        CollectorProcess::with_config(sampling(&sink, &format!("{{decision_wait: 1s, policies: [{ERRORS}]}}"))).start();
    send(&collector, &[(1, 0), (2, 0), (1, 2), (3, 1), (1, 0)]);
    let sampler = || collector.status()["samplers"]["tail_sampling"].clone();
    assert_eq!((&sampler()["state"], &sampler()["traces"]), (&"ok".into(), &3.into()), "{}", sampler());
    sink.wait_for_items(3);
    assert_eq!(arrived(&sink), [1, 1, 1]);
    wait_until("nothing waits any more", || sampler()["waiting_bytes"] == 0);
    send(&collector, &[(1, 0)]);
    sink.wait_for_items(4);
    for (name, labels, value) in [
        ("count_traces_sampled", &[r#"policy="errors""#, r#"decision="sampled""#][..], 1.0),
        ("count_spans_sampled", &[r#"policy="errors""#, r#"decision="sampled""#], 3.0),
        ("count_traces_sampled", &[r#"policy="errors""#, r#"decision="not_sampled""#], 2.0),
        ("global_count_traces_sampled", &[r#"sampled="true""#], 1.0),
        ("new_trace_id_received", &[], 3.0),
        ("sampling_traces_on_memory", &[], 3.0),
        ("sampling_late_span_age_count", &[], 1.0),
    ] {
        let name = format!("otelcol_processor_tail_sampling_{name}");
        assert_eq!(collector.metric(&name, labels), value, "{name} {labels:?}\n{}", collector.metrics_page());
    }
}

#[test]
fn policies_change_while_traces_wait() {
    let sink = SinkProcess::start();
    let settings = |policy: &str| format!("{{decision_wait: 10m, policies: [{policy}]}}");
    let mut collector = CollectorProcess::with_config(sampling(&sink, &settings(ERRORS))).start();
    send(&collector, &[(1, 2), (2, 0)]);
    let fine = "{name: fine, type: status_code, status_code: {status_codes: [UNSET]}}";
    collector.reload(sampling(&sink, &settings(fine)));
    assert_eq!(collector.status()["samplers"]["tail_sampling"]["traces"], 2, "they wait on");
    // The end makes it time for all that waits.
    assert!(collector.stop().success());
    assert_eq!(arrived(&sink), [2]);
}

#[test]
fn a_reload_of_something_else_keeps_what_waits_and_what_was_decided() {
    let sink = SinkProcess::start();
    let other = SinkProcess::start();
    let settings = format!("{{decision_wait: 10m, sample_on_first_match: true, policies: [{ERRORS}]}}");
    let collector = CollectorProcess::with_config(sampling(&sink, &settings)).start();
    send(&collector, &[(1, 2), (2, 0)]);
    sink.wait_for_items(1);
    collector.reload(sampling(&other, &settings));
    send(&collector, &[(1, 0)]);
    send(&collector, &[(2, 2)]);
    other.wait_for_items(3);
    assert_eq!((arrived(&sink), arrived(&other)), (vec![1], vec![1, 2, 2]));
}

#[test]
fn a_backend_that_is_down_costs_no_trace_that_was_taken() {
    let sink = SinkProcess::hanging();
    let config = sampling(&sink, "{decision_wait: 1s, policies: [{name: all, type: always_sample}]}");
    let collector = CollectorProcess::with_config(config).start();
    let report = LoadGenerator::run("grpc", collector.grpc(), &["--requests", "50", "--spans", "100"]);
    wait_until("all traces are sampled", || {
        collector.metric("otelcol_processor_tail_sampling_global_count_traces_sampled", &[r#"sampled="true""#]) == 500.0
    });
    sink.recover();
    sink.wait_for_all(&report.acknowledged);
    assert_eq!(collector.metric("kubewake_pipeline_dropped_items", &[]), 0.0);
}

#[test]
fn what_waits_is_decided_on_when_the_collector_stops() {
    let sink = SinkProcess::start();
    let config = sampling(&sink, &format!("{{decision_wait: 10m, policies: [{ERRORS}]}}"));
    let mut collector = CollectorProcess::with_config(config).start();
    send(&collector, &[(1, 2), (2, 0)]);
    assert!(collector.stop().success());
    assert_eq!(arrived(&sink), [1]);
}

#[test]
fn when_memory_runs_short_a_share_is_kept_with_its_weight_until_there_is_some_again() {
    let sink = SinkProcess::start();
    // Nothing that the load sends has an error.
    let config = |wait: &str| {
        let settings = format!("{{decision_wait: {wait}, overload_sampling_percentage: 50, policies: [{ERRORS}]}}");
        sampling(&sink, &settings)
            .processor("memory_limiter", "{check_interval: 1s, limit_mib: 4, spike_limit_mib: 0}")
            .pipeline("traces", "memory_limiter, tail_sampling", "otlp")
    };
    let collector = CollectorProcess::with_config(config("10m")).start();
    let state = || collector.status()["samplers"]["tail_sampling"]["state"].clone();
    let gauge = || collector.metric("kubewake_tail_sampling_overloaded", &[]);
    let early = || collector.metric("kubewake_tail_sampling_early_decisions", &[r#"reason="overload""#]);
    assert_eq!((state(), gauge()), ("ok".into(), 0.0));
    wait_until("new traces do not wait any more", || {
        LoadGenerator::run("grpc", collector.grpc(), &["--requests", "20", "--spans", "100", "--retry"]);
        early() > 100.0
    });
    assert_eq!((state(), gauge()), ("overloaded".into(), 1.0));
    sink.wait_for_items(1);
    let requests = sink.received(Signal::Traces);
    let scopes = requests.iter().map(|request| &request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]);
    assert!(scopes.map(|span| &span["traceState"]).all(|state| state == "ot=th:8"), "{requests:?}");

    collector.reload(config("1s"));
    wait_until("waiting traces are decided and memory is free", || state() == "ok" && gauge() == 0.0);
    assert_eq!(collector.metric("kubewake_tail_sampling_overloads", &[]), 1.0);
}

#[test]
fn a_condition_in_ottl_is_refused_when_it_is_loaded() {
    let sink = SinkProcess::start();
    let policy = r#"{name: o, type: ottl_condition, ottl_condition: {span: ['name == "x"']}}"#;
    let config = sampling(&sink, &format!("{{policies: [{policy}]}}"));
    let output = CollectorProcess::with_config(config).validate();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("`ottl_condition` is not supported by this build"), "{said}");
}
