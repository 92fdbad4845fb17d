//! A collector sends to another one, which a user runs behind it.

use kubewake_e2e::{Collector, Config, Load, Sink, config::Settings, grpc_to, http_to};

#[test]
fn a_chain_over_grpc_delivers_everything_once() {
    delivers_everything_once(grpc_to, "otlp", Collector::grpc);
}

#[test]
fn a_chain_over_http_delivers_everything_once() {
    delivers_everything_once(http_to, "otlphttp", Collector::http);
}

fn delivers_everything_once(
    to: fn(std::net::SocketAddr) -> Settings,
    exporter: &str,
    door: fn(&Collector) -> std::net::SocketAddr,
) {
    let sink = Sink::start();
    let batched = |config: Config| config.processor("batch", "{timeout: 50ms}").pipeline("traces", "batch", exporter);
    let second = Collector::with(batched(Config::to(exporter, to(sink.address())))).start();
    let first = Collector::with(batched(Config::to(exporter, to(door(&second))))).start();
    let sent = ["traces", "logs", "metrics"].map(|signal| {
        let report = Load::run("grpc", first.grpc(), &["--requests", "60", "--signal", signal, "--compression", "gzip"]);
        assert_eq!(report.items("acknowledged"), 6000, "{report:?}");
        report
    });
    sink.await_items(3 * 6000);
    for report in sent.iter().take(2) {
        assert_eq!(sink.missing(&report.acknowledged), 0);
    }
    let stats = sink.stats();
    assert_eq!((stats["duplicates"].as_u64(), stats["items"].as_u64()), (Some(0), Some(3 * 6000)), "{stats}");
}
