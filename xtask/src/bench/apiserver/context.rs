//! What a caller's trace context costs while nothing is exported.

use super::{Server, Size, requests::CONNECTIONS};
use crate::bench::check::{Section, median};

/// In microseconds.
const MAX: f64 = 1.0;

/// Rounds of the same requests with and without the header in turn, so that what changes on the machine changes for both.
pub(super) fn measure(size: Size, section: &mut Section) -> anyhow::Result<()> {
    let server = Server::start("apiserver-context", &[])?;
    let mut client = server.client(CONNECTIONS)?;
    client.tell("create object 1000")?;
    let get = format!("get object 1000 {}", size.gets);
    client.tell(&get)?;
    let (mut without, mut with, mut differences) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..size.pairs {
        let (plain, _) = server.cost(&mut client, &get)?;
        let (traced, _) = server.cost(&mut client, &format!("{get} traced"))?;
        without.push(plain);
        with.push(traced);
        differences.push(traced - plain);
    }
    let difference = median(differences.clone());
    let noise = deviation(&differences);
    let what = format!("trace context without export at most {MAX:.0} µs");
    let shown = format!(
        "{difference:.2} µs (a get {:.1} µs with, {:.1} µs without; half of {} pairs differ from the median by less than {noise:.2} µs)",
        median(with),
        median(without),
        size.pairs
    );
    section.check(what, shown, difference <= MAX);
    server.process.stop()
}

/// How far half of them are from the median at most.
pub(super) fn deviation(values: &[f64]) -> f64 {
    let middle = median(values.to_vec());
    median(values.iter().map(|value| (value - middle).abs()).collect())
}
