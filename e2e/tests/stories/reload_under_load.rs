//! The document changes, again and again, while senders send.

use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, Http1Connection, LoadGenerator, SinkProcess, config::otlp_at, grpc_to, http_to,
};

/// What changes: each of them in a way of its own, some of them not at all good.
fn documents(sink: &SinkProcess) -> Vec<(ConfigBuilder, bool)> {
    let base = ConfigBuilder::exporting_to("otlp", grpc_to(sink.address()));
    vec![
        (base.clone().exporter("otlp", grpc_to(sink.address()).with_setting("compression: gzip")), true),
        (base.clone().processor("batch", "{timeout: 20ms}").pipeline("traces", "batch", "otlp"), true),
        (base.clone().pipeline("traces", "not_there", "otlp"), false),
        (base.clone().processor("batch", "{timeout: 40ms}").pipeline("traces", "batch", "otlp"), true),
        (ConfigBuilder::exporting_to("otlphttp", http_to(sink.address())), true),
        (
            base.clone().receiver("otlp/more", otlp_at("127.0.0.1:0", "127.0.0.1:0")).pipeline_of(
                "logs",
                "otlp/more",
                "",
                "otlp",
            ),
            true,
        ),
        (
            base.clone().exporter("otlp", grpc_to(sink.address()).with_setting("sending_queue: {queue_size: 5000}")),
            true,
        ),
        (base.clone().exporter("nop", "").pipeline("traces", "", "otlp, nop"), true),
        (base.clone().exporter("nop", "").pipeline("traces/more", "", "nop"), true),
        (
            base.clone().processor("memory_limiter", "{check_interval: 1s, limit_mib: 512}").pipeline(
                "traces",
                "memory_limiter",
                "otlp",
            ),
            true,
        ),
        (base, true),
    ]
}

#[test]
fn nothing_is_lost_or_doubled_and_no_connection_is_closed() {
    let sink = SinkProcess::start();
    let documents = documents(&sink);
    let collector = CollectorProcess::with_config(&documents.last().unwrap().0).start();
    let args = ["--requests", "600", "--rate", "6000", "--spans", "50", "--connections", "2"];
    let mut senders =
        [LoadGenerator::start("grpc", collector.grpc(), &args), LoadGenerator::start("http", collector.http(), &args)];
    let mut open = Http1Connection::connect(collector.http());
    let mut reloads = 0;
    for (document, good) in documents.iter().cycle() {
        if *good {
            collector.reload(document)
        } else {
            drop(collector.reload_refused(document))
        }
        reloads += 1;
        // The same connection all the time.
        assert_eq!(open.post("/v1/traces", "application/json", b"{}").status, 200);
        if reloads >= 2 * documents.len() && senders.iter_mut().all(|sender| !sender.is_running()) {
            break;
        }
    }
    let reports = senders.map(LoadGenerator::finish);
    for report in &reports {
        assert_eq!(report.json["connections"]["lost"], 0, "{report:?}");
        assert_eq!(report.items("acknowledged"), 30_000, "{report:?}");
        sink.wait_for_all(&report.acknowledged);
    }
    sink.wait_for_items(60_000);
    assert_eq!((sink.items(), sink.count("duplicates")), (60_000, 0), "after {reloads} reloads");
    let dropped = collector.metric("kubewake_pipeline_dropped_items", &[]);
    assert_eq!(dropped, 0.0, "{}", collector.status());
}
