//! The backend hangs and memory is short: senders are asked to wait, and nothing that was acknowledged is lost.

use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, Http1Connection, LoadGenerator, SinkProcess, grpc_to, http,
    otlp::{gzip, spans},
    python, wait_until,
};

const UNAVAILABLE: u32 = 14;
const RESOURCE_EXHAUSTED: u32 = 8;

/// A budget of one MiB, and a queue that is no limit beside it.
fn short_of_memory(sink: &SinkProcess) -> ConfigBuilder {
    ConfigBuilder::exporting_to("otlp", grpc_to(sink.address()).with_setting("sending_queue: {queue_size: 100000}"))
        .processor("memory_limiter", "{check_interval: 1s, limit_mib: 1, spike_limit_mib: 0}")
        .pipeline("traces", "memory_limiter", "otlp")
}

/// A queue of ten requests.
fn short_of_queue(sink: &SinkProcess) -> ConfigBuilder {
    ConfigBuilder::exporting_to(
        "otlp",
        grpc_to(sink.address()).with_setting("sending_queue: {queue_size: 10, num_consumers: 1}"),
    )
}

fn filled(config: ConfigBuilder) -> CollectorProcess {
    let collector = CollectorProcess::with_config(config).start();
    let body = spans(&["x".repeat(20_000).as_str()]);
    let mut connection = Http1Connection::connect(collector.http());
    wait_until("the queue is full", || connection.post("/v1/traces", "application/x-protobuf", &body).status == 503);
    collector
}

#[test]
fn refusals_say_when_to_come_back() {
    for shortage in [short_of_memory, short_of_queue] {
        let sink = SinkProcess::hanging();
        let collector = filled(shortage(&sink));
        let body = spans(&["x".repeat(20_000).as_str()]);
        let answer = &python::call_traces(collector.grpc(), &[], &body)[0];
        assert_eq!(answer.code, UNAVAILABLE, "{answer:?}");
        assert!(answer.details.contains("google.rpc.RetryInfo"), "{answer:?}");
        let answer = http::post(collector.http(), "/v1/traces", "application/json", b"{}");
        assert_eq!(answer.status, 200, "nothing is always taken");
        let answer = http::post(collector.http(), "/v1/traces", "application/x-protobuf", &body);
        assert_eq!(answer.status, 503);
        assert!(answer.header("retry-after").parse::<u32>().is_ok_and(|seconds| seconds > 0), "{answer:?}");
        sink.recover();
        let again = || http::post(collector.http(), "/v1/traces", "application/x-protobuf", &body).status == 200;
        wait_until("the collector accepts data again", again);
    }
}

#[test]
fn a_request_for_which_there_is_never_memory_is_refused_for_good() {
    let sink = SinkProcess::start();
    let collector = CollectorProcess::with_config(short_of_memory(&sink)).start();
    let body = spans(&["x".repeat(2 << 20).as_str()]);
    for (encoding, body) in [("", body.clone()), ("gzip", gzip(&body))] {
        let headers = [("content-type", "application/x-protobuf"), ("content-encoding", encoding)];
        let answer = Http1Connection::connect(collector.http()).request("POST", "/v1/traces", &headers, &body);
        assert_eq!((answer.status, answer.header("retry-after")), (413, ""), "{encoding}: {answer:?}");
    }
    let answer = &python::call_traces(collector.grpc(), &[], &body)[0];
    assert_eq!(answer.code, RESOURCE_EXHAUSTED, "{answer:?}");
    assert!(!answer.details.contains("google.rpc.RetryInfo"), "{answer:?}");
    assert_eq!(collector.metric("kubewake_receiver_refused_requests", &["reason=\"too_large\""]), 3.0);
    assert_eq!(collector.status()["pipelines"]["traces"]["diagnosis"], "BufferFilling", "data comes, and has no room");
    let answer = http::post(collector.http(), "/v1/traces", "application/x-protobuf", &spans(&["small"]));
    assert_eq!(answer.status, 200);
    sink.wait_for_items(1);
}

#[test]
fn what_was_acknowledged_arrives_once_the_backend_is_back() {
    for (shortage, protocol) in
        [(short_of_memory as fn(&SinkProcess) -> ConfigBuilder, "grpc"), (short_of_queue, "http")]
    {
        let sink = SinkProcess::hanging();
        let collector = CollectorProcess::with_config(shortage(&sink)).start();
        let door = if protocol == "grpc" { collector.grpc() } else { collector.http() };
        // More than fits, by far.
        let refused = LoadGenerator::run(protocol, door, &["--requests", "300", "--spans", "50"]);
        assert!(refused.items("refused") > 0, "{refused:?}");
        assert_eq!(refused.items("failed"), 0, "{refused:?}");
        let patient =
            LoadGenerator::start(protocol, door, &["--requests", "100", "--spans", "50", "--retry", "--grace", "60"]);
        sink.recover();
        let patient = patient.finish();
        assert_eq!(patient.items("acknowledged"), 5000, "{patient:?}");
        sink.wait_for_all(&refused.acknowledged);
        sink.wait_for_all(&patient.acknowledged);
        let count = refused.items("acknowledged") + patient.items("acknowledged");
        assert_eq!((sink.items(), sink.count("duplicates")), (count, 0));
        let dropped = collector.metric("kubewake_pipeline_dropped_items", &[]);
        assert_eq!(dropped, 0.0, "a refusal is no loss");
        wait_until("the budget is free again", || collector.metric("kubewake_memory_used_bytes", &[]) == 0.0);
    }
}

#[test]
fn memory_stays_within_the_budget_whatever_is_sent() {
    /// Beyond the budget and the program itself, of which a build for tests is large: what connections read ahead.
    const ROOM_MIB: u64 = 32;
    let sink = SinkProcess::hanging();
    let config = ConfigBuilder::exporting_to(
        "otlp",
        grpc_to(sink.address()).with_setting("sending_queue: {queue_size: 1000000}"),
    )
    .processor("memory_limiter", "{check_interval: 1s, limit_mib: 16, spike_limit_mib: 0}")
    .processor("batch", "{timeout: 100ms}")
    .pipeline("traces", "memory_limiter, batch", "otlp");
    let collector = CollectorProcess::with_config(config).start();
    let most = collector.peak_mib() + 16 + ROOM_MIB;
    // Several times what fits, in requests of half a MiB, from many connections at once.
    let run = |protocol, door, more: &[&str]| {
        let args = ["--spans", "1000", "--connections", "16", "--in-flight", "4"];
        LoadGenerator::run(protocol, door, &[&args, more].concat())
    };
    let reports = [
        run("grpc", collector.grpc(), &["--requests", "150"]),
        run("http", collector.http(), &["--requests", "150"]),
        run("grpc", collector.grpc(), &["--requests", "50", "--compression", "gzip"]),
    ];
    assert!(reports.iter().all(|report| report.items("failed") == 0), "{reports:?}");
    assert!(reports[0].items("acknowledged") > 0 && reports[0].items("refused") > 0, "{reports:?}");
    assert!(collector.peak_mib() <= most, "{} MiB", collector.peak_mib());
    sink.recover();
    reports.iter().for_each(|report| sink.wait_for_all(&report.acknowledged));
    assert!(collector.peak_mib() <= most, "{} MiB", collector.peak_mib());
}
