//! A collector sends to another one, which a user runs behind it.

use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, LoadGenerator, SinkProcess, config::FlowSettings, grpc_to, http_to, wait_until,
};

#[test]
fn a_chain_over_grpc_delivers_everything_once() {
    delivers_everything_once(grpc_to, "otlp", CollectorProcess::grpc);
}

#[test]
fn a_chain_over_http_delivers_everything_once() {
    delivers_everything_once(http_to, "otlphttp", CollectorProcess::http);
}

fn delivers_everything_once(
    to: fn(std::net::SocketAddr) -> FlowSettings,
    exporter: &str,
    door: fn(&CollectorProcess) -> std::net::SocketAddr,
) {
    let sink = SinkProcess::start();
    let batched =
        |config: ConfigBuilder| config.processor("batch", "{timeout: 50ms}").pipeline("traces", "batch", exporter);
    let second =
        CollectorProcess::with_config(batched(ConfigBuilder::exporting_to(exporter, to(sink.address())))).start();
    let first =
        CollectorProcess::with_config(batched(ConfigBuilder::exporting_to(exporter, to(door(&second))))).start();
    let sent = ["traces", "logs", "metrics"].map(|signal| {
        let report = LoadGenerator::run(
            "grpc",
            first.grpc(),
            &["--requests", "60", "--signal", signal, "--compression", "gzip"],
        );
        assert_eq!(report.items("acknowledged"), 6000, "{report:?}");
        report
    });
    sink.wait_for_items(3 * 6000);
    for report in sent.iter().take(2) {
        assert_eq!(sink.missing(&report.acknowledged), 0);
    }
    let stats = sink.stats();
    assert_eq!((stats["duplicates"].as_u64(), stats["items"].as_u64()), (Some(0), Some(3 * 6000)), "{stats}");
}

#[test]
fn every_compression_is_understood_by_the_next() {
    let sink = SinkProcess::start();
    let second = CollectorProcess::with_config(ConfigBuilder::exporting_to("otlp", grpc_to(sink.address()))).start();
    let mut config = ConfigBuilder::new();
    let mut count = 0;
    for compression in ["none", "gzip", "zstd", "snappy", "zlib", "deflate", "lz4"] {
        let compressed = format!("compression: {compression}");
        let http = format!("otlphttp/{compression}");
        config = config.exporter(&http, http_to(second.http()).with_setting(&compressed));
        config = config.pipeline(&format!("traces/http_{compression}"), "", &http);
        count += 1;
        // gRPC has fewer.
        if ["none", "gzip", "zstd", "snappy"].contains(&compression) {
            let grpc = format!("otlp/{compression}");
            config = config.exporter(&grpc, grpc_to(second.grpc()).with_setting(&compressed));
            config = config.pipeline(&format!("traces/grpc_{compression}"), "", &grpc);
            count += 1;
        }
    }
    let first = CollectorProcess::with_config(config).start();
    let report = LoadGenerator::run("http", first.http(), &["--requests", "3"]);
    assert_eq!(report.items("acknowledged"), 300);
    wait_until("every pipeline has delivered its data", || {
        let status = first.status();
        status["pipelines"].as_object().unwrap().values().all(|pipeline| pipeline["delivered"] == 300)
    });
    sink.wait_for_items(300 * count);
    assert_eq!((sink.items(), sink.count("distinct")), (300 * count, 300));
}
