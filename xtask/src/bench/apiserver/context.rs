//! The cost of a caller's trace context while nothing is exported.

use super::{ApiServerWorkload, BenchApiServer, requests::CONNECTIONS};
use crate::bench::section::{BenchSection, median};

const MAX_ADDED_MICROS: f64 = 1.0;

/// Alternates rounds of the same requests with and without the header, so that changes of the machine affect
/// both alike.
pub(super) fn measure(size: ApiServerWorkload, section: &mut BenchSection) -> anyhow::Result<()> {
    let server = BenchApiServer::start("apiserver-context", &[])?;
    let mut client = server.client(CONNECTIONS)?;
    client.run_command("create object 1000")?;
    let get = format!("get object 1000 {}", size.gets);
    client.run_command(&get)?;
    let mut without = Vec::new();
    let mut with = Vec::new();
    let mut differences = Vec::new();
    for _ in 0..size.pairs {
        let (plain, _) = server.cost(&mut client, &get)?;
        let (traced, _) = server.cost(&mut client, &format!("{get} traced"))?;
        without.push(plain);
        with.push(traced);
        differences.push(traced - plain);
    }
    let difference = median(differences.clone());
    let noise = median_deviation(&differences);
    let what = format!("trace context without export at most {MAX_ADDED_MICROS:.0} µs");
    let shown = format!(
        "{difference:.2} µs (a get {:.1} µs with, {:.1} µs without; half of {} pairs differ from the median by less than {noise:.2} µs)",
        median(with),
        median(without),
        size.pairs
    );
    section.check(what, shown, difference <= MAX_ADDED_MICROS);
    server.process.stop()
}

/// The median of the absolute deviations from the median.
pub(super) fn median_deviation(values: &[f64]) -> f64 {
    let middle = median(values.to_vec());
    median(values.iter().map(|value| (value - middle).abs()).collect())
}
