//! What load balancing exporters count, under the names that the Collector's contributions have.

use std::sync::atomic::{AtomicU64, Ordering};

use super::page::{Page, Sizes};
use crate::core::{BalancerStats, MoveReason, Registry, ResolverKind};

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

pub(super) fn all(page: &mut Page, registry: &Registry) {
    for (id, stats) in registry.balancers() {
        resolvers(page, &stats);
        for success in [true, false] {
            page.counter(
                "otelcol_loadbalancer_backend_outcome",
                "Number of successes and failures for each endpoint. [Development]",
                &[("success", if success { "true" } else { "false" })],
                stats.outcomes(success),
            );
        }
        for reason in MoveReason::ALL {
            page.counter(
                "kubewake_loadbalancer_moved_items",
                "Number of items that went to another peer than the first of their order, by reason.",
                &[("exporter", id.as_str()), ("reason", reason.name())],
                stats.moved_for(*reason),
            );
        }
        for (endpoint, latency) in stats.latencies() {
            let (rows, sum, count) = latency.snapshot();
            page.histogram(
                "otelcol_loadbalancer_backend_latency",
                "Response latency in ms for the backends. [Development]",
                &[("endpoint", &endpoint)],
                Sizes { rows, sum, count, unit: 1 },
            );
        }
    }
}

/// Only of the resolver that is in use, or was.
fn resolvers(page: &mut Page, stats: &BalancerStats) {
    for kind in ResolverKind::ALL {
        let resolver = stats.resolver(*kind);
        let (succeeded, failed) = (read(&resolver.succeeded), read(&resolver.failed));
        if succeeded + failed == 0 {
            continue;
        }
        let label = ("resolver", kind.name());
        let help = "Current number of backends in use. [Development]";
        page.gauge("otelcol_loadbalancer_num_backends", help, &[label], read(&resolver.backends));
        let help = "Number of times the list of backends was updated. [Development]";
        page.counter("otelcol_loadbalancer_num_backend_updates", help, &[label], read(&resolver.updates));
        let help = "Number of times the resolver has triggered new resolutions. [Development]";
        for (success, count) in [("true", succeeded), ("false", failed)] {
            let labels = [label, ("success", success)];
            page.counter("otelcol_loadbalancer_num_resolutions", help, &labels, count);
        }
    }
}
