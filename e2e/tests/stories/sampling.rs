//! Collectors keep a part of what they get, each the same part.

use kubewake_e2e::{CollectorProcess, ConfigBuilder, SinkProcess, curl, grpc_to, wait_until};
use kubewake_otlp::{
    Signal, TraceState,
    probability::{Randomness, Threshold},
};
use serde_json::Value;

fn sampling(sink: &SinkProcess, settings: &str) -> CollectorProcess {
    let config =
        ConfigBuilder::new().processor("probabilistic_sampler", settings).exporter("otlp", grpc_to(sink.address()));
    let both = config.pipeline("traces", "probabilistic_sampler", "otlp");
    CollectorProcess::with_config(both.pipeline("logs", "probabilistic_sampler", "otlp")).start()
}

/// So many spans, each of a trace of its own.
fn spans(count: u128) -> String {
    let id = |n: u128| format!("{:032x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
    let all: Vec<String> = (1..=count).map(|n| format!(r#"{{"traceId": "{}", "name": "{n}"}}"#, id(n))).collect();
    format!(r#"{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{}]}}]}}]}}"#, all.join(","))
}

fn send(collector: &CollectorProcess, signal: Signal, body: &str) {
    let url = format!("http://{}/v1/{signal}", collector.http());
    let args = ["-H", "content-type: application/json", "--data-binary", "@-", &url];
    assert_eq!(curl(args, body.as_bytes()).unwrap().status, 200);
}

fn all_spans(sink: &SinkProcess) -> Vec<Value> {
    let requests = sink.received(Signal::Traces);
    let spans = requests.iter().flat_map(|request| request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array());
    spans.flatten().cloned().collect()
}

#[test]
fn replicas_keep_the_same_traces_and_say_at_which_probability() {
    let settings = "{mode: equalizing, sampling_percentage: 25}";
    let sinks = [SinkProcess::start(), SinkProcess::start()];
    let replicas = sinks.each_ref().map(|sink| sampling(sink, settings));
    for collector in &replicas {
        send(collector, Signal::Traces, &spans(2000));
    }
    let quarter = Threshold::from_probability(0.25, 4).unwrap();
    let kept = sinks.each_ref().map(|sink| {
        sink.wait_for_items(400);
        all_spans(sink)
    });
    assert_eq!(kept[0], kept[1]);
    assert!((400..600).contains(&kept[0].len()), "{}", kept[0].len());
    for span in &kept[0] {
        let state = TraceState::parse(span["traceState"].as_str().unwrap().as_bytes()).unwrap();
        assert_eq!(state.threshold(), Some(quarter));
        let id = u128::from_str_radix(span["traceId"].as_str().unwrap(), 16).unwrap();
        assert!(quarter.keeps(Randomness::from_bits(id as u64)));
    }
    let name = "otelcol_processor_probabilistic_sampler_count_traces_sampled";
    for collector in &replicas {
        let count = |sampled| collector.metric(name, &[r#"policy="trace_id_w3c""#, sampled]);
        assert_eq!(count(r#"sampled="true""#), kept[0].len() as f64);
        assert_eq!(count(r#"sampled="true""#) + count(r#"sampled="false""#), 2000.0);
    }
}

#[test]
fn the_percentage_changes_while_data_flows() {
    let sink = SinkProcess::start();
    let collector = sampling(&sink, "{sampling_percentage: 0}");
    send(&collector, Signal::Traces, &spans(50));
    let body =
        r#"{"resourceLogs": [{"scopeLogs": [{"logRecords": [{"traceId": "0102030405060708090a0b0c0d0e0f10"}]}]}]}"#;
    send(&collector, Signal::Logs, body);
    let dropped = |noun| {
        let name = format!("otelcol_processor_probabilistic_sampler_count_{noun}_sampled");
        collector.metric(&name, &[r#"sampled="false""#])
    };
    assert_eq!((dropped("traces"), dropped("logs")), (50.0, 1.0));
    let all = ConfigBuilder::new().processor("probabilistic_sampler", "{sampling_percentage: 100}");
    let all = all.exporter("otlp", grpc_to(sink.address())).pipeline("traces", "probabilistic_sampler", "otlp");
    collector.reload(all.pipeline("logs", "probabilistic_sampler", "otlp"));
    send(&collector, Signal::Traces, &spans(50));
    send(&collector, Signal::Logs, body);
    sink.wait_for_items(51);
    wait_until("the log record has its sampling threshold", || {
        sink.received(Signal::Logs).iter().any(|request| request.to_string().contains("sampling.threshold"))
    });
    assert_eq!((dropped("traces"), dropped("logs")), (50.0, 1.0), "counters go on");
}
