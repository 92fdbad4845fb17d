//! What it costs to record and export every request.

use std::{thread::sleep, time::Duration};

use super::{Server, Size, client::Client, context::deviation, requests::CONNECTIONS};
use crate::bench::{
    check::{Section, median},
    directory,
    sink::Sink,
};

/// In microseconds.
const MAX: f64 = 40.0;
/// The exporter sends what it has within a second.
const EXPORTED: Duration = Duration::from_secs(2);

/// Creates at once: their spans fit into the exporter's queue, so that the cost of all of them counts.
const BURST: usize = 150;
/// Between bursts.
const PAUSE: Duration = Duration::from_millis(100);

/// Rounds on a server that exports everything and on one that does not in turn, so that what changes on the machine changes for both.
pub(super) fn measure(size: Size, section: &mut Section) -> anyhow::Result<()> {
    let sink = Sink::start("apiserver-sink")?;
    let config = directory().join("apiserver-tracing.yaml");
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: {}\nsamplingRatePerMillion: 1000000\n",
        sink.address
    );
    std::fs::write(&config, text)?;
    let dark = Server::start("apiserver-dark", &[])?;
    let traced = Server::start("apiserver-traced", &["--tracing-config-file", &config.to_string_lossy()])?;
    let (mut dark_client, mut traced_client) = (dark.client(CONNECTIONS)?, traced.client(CONNECTIONS)?);
    let expected = spans_of_one(&mut traced_client, &sink)?;
    let (mut without, mut with, mut differences) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..size.pairs {
        let plain = burst(&dark, &mut dark_client, round)?;
        let cost = burst(&traced, &mut traced_client, round)?;
        without.push(plain);
        with.push(cost);
        differences.push(cost - plain);
    }
    sleep(EXPORTED);
    let lost = (expected * (size.pairs * BURST) as u64).abs_diff(sink.count("/items")?);
    let difference = median(differences.clone());
    let shown = format!(
        "{difference:.1} µs (a create {:.1} µs with, {:.1} µs without; half of {} pairs differ from the median by less than {:.1} µs; \
         {expected} spans each)",
        median(with),
        median(without),
        differences.len(),
        deviation(&differences),
    );
    section.check(format!("tracing of every create at most {MAX:.0} µs"), shown, difference <= MAX);
    section.check_none("spans that did not arrive", lost);
    dark.process.stop()?;
    traced.process.stop()
}

fn burst(server: &Server, client: &mut Client, round: usize) -> anyhow::Result<f64> {
    let before = server.process.cpu()?;
    client.tell(&format!("create round{round} {BURST}"))?;
    // The exporter's work counts, too.
    sleep(PAUSE);
    let cpu = server.process.cpu()? - before;
    Ok(cpu.as_secs_f64() * 1e6 / BURST as f64)
}

/// How many spans a create leaves. What came before is not counted afterwards either.
fn spans_of_one(client: &mut Client, sink: &Sink) -> anyhow::Result<u64> {
    // The first ones warm up.
    client.tell(&format!("create warm {BURST}"))?;
    sleep(EXPORTED);
    sink.reset()?;
    client.tell("create one 1")?;
    sleep(EXPORTED);
    let spans = sink.count("/items")?;
    sink.reset()?;
    Ok(spans)
}
