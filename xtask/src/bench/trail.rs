//! The cost of a traced reconcile that records nothing.

use std::process::Command;

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use super::{BenchPlan, section::BenchSection};
use crate::steps::cargo;

const MAX_NANOSECONDS: u64 = 5_000;
const MAX_BYTES: u64 = 2_048;

#[derive(Debug, Deserialize)]
struct TrailReport {
    rows: Vec<TrailRow>,
    requests: TrailRequests,
}

#[derive(Debug, Deserialize)]
struct TrailRow {
    object: String,
    plain_ns: u64,
    traced_ns: u64,
    more_bytes: u64,
}

#[derive(Debug, Deserialize)]
struct TrailRequests {
    plain: u64,
    traced: u64,
}

pub(crate) fn run(_: &BenchPlan) -> anyhow::Result<BenchSection> {
    let report = measure()?;
    let how = "A reconciler that does nothing is wrapped by `Trail::reconcile` with a sampler that records nothing, \
               and compared with the same reconciler alone. The best of 5 rounds of 200000 runs counts. Memory is the \
               total of all allocations of a run. Requests are those of 100 runs that make one request each.";
    let mut section = BenchSection::new("Tracing an operator that records nothing", how);
    section.header(&["the object has", "alone", "traced", "allocated more"]);
    for TrailRow { object, plain_ns, traced_ns, more_bytes } in &report.rows {
        section.row([object.clone(), format!("{plain_ns} ns"), format!("{traced_ns} ns"), format!("{more_bytes} B")]);
    }
    for TrailRow { object, plain_ns, traced_ns, more_bytes } in &report.rows {
        let more = traced_ns.saturating_sub(*plain_ns);
        section.check(format!("{object}: at most 5 µs more a run"), format!("{more} ns"), more <= MAX_NANOSECONDS);
        section.check(
            format!("{object}: at most 2 KiB more a run"),
            format!("{more_bytes} B"),
            *more_bytes <= MAX_BYTES,
        );
    }
    let TrailRequests { plain, traced } = report.requests;
    section.check_none("requests more than without it", traced.abs_diff(plain));
    Ok(section)
}

fn measure() -> anyhow::Result<TrailReport> {
    let mut command: Command = cargo();
    command.args(["run", "--release", "--locked", "--quiet", "-p", "kubewake-trail", "--example", "overhead"]);
    let output = command.output().context("failed to run the example `overhead`")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the example `overhead` failed: {errors}");
    serde_json::from_slice(&output.stdout).context("the example `overhead` printed no report")
}
