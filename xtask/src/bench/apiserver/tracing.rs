//! The cost of recording and exporting every request.

use std::{thread::sleep, time::Duration};

use super::{
    ApiServerWorkload, BenchApiServer, client::ApiClientProcess, context::median_deviation, requests::CONNECTIONS,
};
use crate::bench::{
    directory,
    section::{BenchSection, median},
    sink::BenchSink,
};

const MAX_ADDED_MICROS: f64 = 40.0;
/// The exporter exports its queue within a second.
const EXPORT_WAIT: Duration = Duration::from_secs(2);

/// Creates in one burst: their spans fit into the exporter's queue, so that the cost of all of them is
/// measured.
const BURST: usize = 150;
const BURST_INTERVAL: Duration = Duration::from_millis(100);

/// Alternates rounds on a server that exports everything and on one that does not, so that changes of the
/// machine affect both alike.
pub(super) fn measure(size: ApiServerWorkload, section: &mut BenchSection) -> anyhow::Result<()> {
    let sink = BenchSink::start("apiserver-sink")?;
    let config = directory().join("apiserver-tracing.yaml");
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: {}\nsamplingRatePerMillion: 1000000\n",
        sink.address
    );
    std::fs::write(&config, text)?;
    let dark = BenchApiServer::start("apiserver-dark", &[])?;
    let traced = BenchApiServer::start("apiserver-traced", &["--tracing-config-file", &config.to_string_lossy()])?;
    let mut dark_client = dark.client(CONNECTIONS)?;
    let mut traced_client = traced.client(CONNECTIONS)?;
    let expected = spans_per_create(&mut traced_client, &sink)?;
    let mut without = Vec::new();
    let mut with = Vec::new();
    let mut differences = Vec::new();
    for round in 0..size.pairs {
        let plain = burst(&dark, &mut dark_client, round)?;
        let cost = burst(&traced, &mut traced_client, round)?;
        without.push(plain);
        with.push(cost);
        differences.push(cost - plain);
    }
    sleep(EXPORT_WAIT);
    let lost = (expected * (size.pairs * BURST) as u64).abs_diff(sink.count("/items")?);
    let difference = median(differences.clone());
    let shown = format!(
        "{difference:.1} µs (a create {:.1} µs with, {:.1} µs without; half of {} pairs differ from the median by less than {:.1} µs; \
         {expected} spans each)",
        median(with),
        median(without),
        differences.len(),
        median_deviation(&differences),
    );
    section.check(
        format!("tracing of every create at most {MAX_ADDED_MICROS:.0} µs"),
        shown,
        difference <= MAX_ADDED_MICROS,
    );
    section.check_none("spans that did not arrive", lost);
    dark.process.stop()?;
    traced.process.stop()
}

fn burst(server: &BenchApiServer, client: &mut ApiClientProcess, round: usize) -> anyhow::Result<f64> {
    let before = server.process.cpu_time()?;
    client.run_command(&format!("create round{round} {BURST}"))?;
    // The CPU time of the exporter counts, too.
    sleep(BURST_INTERVAL);
    let cpu = server.process.cpu_time()? - before;
    Ok(cpu.as_secs_f64() * 1e6 / BURST as f64)
}

/// The number of spans of a create. Earlier spans are not counted.
fn spans_per_create(client: &mut ApiClientProcess, sink: &BenchSink) -> anyhow::Result<u64> {
    // Warm-up.
    client.run_command(&format!("create warm {BURST}"))?;
    sleep(EXPORT_WAIT);
    sink.reset()?;
    client.run_command("create one 1")?;
    sleep(EXPORT_WAIT);
    let spans = sink.count("/items")?;
    sink.reset()?;
    Ok(spans)
}
