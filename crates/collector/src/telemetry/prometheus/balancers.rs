//! Metrics of load balancing exporters, under the names of the Collector's contrib repository.

use std::sync::atomic::{AtomicU64, Ordering};

use super::metrics_page::{HistogramSnapshot, MetricsPage};
use crate::core::{BalancerStats, MoveReason, ResolverKind, StatsRegistry};

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

pub(super) fn write_metrics(page: &mut MetricsPage, registry: &StatsRegistry) {
    for (id, stats) in registry.balancers() {
        resolvers(page, &stats);
        for success in [true, false] {
            page.counter(
                "otelcol_loadbalancer_backend_outcome",
                "Number of successes and failures for each endpoint. [Development]",
                &[("success", if success { "true" } else { "false" })],
                stats.attempts(success),
            );
        }
        for reason in MoveReason::ALL {
            page.counter(
                "kubewake_loadbalancer_moved_items",
                "Number of items that were sent to a peer other than their first choice, by reason.",
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
                HistogramSnapshot { rows, sum, count, unit: 1 },
            );
        }
    }
}

/// Shows only resolvers that are or were in use.
fn resolvers(page: &mut MetricsPage, stats: &BalancerStats) {
    for kind in ResolverKind::ALL {
        let resolver = stats.resolver(*kind);
        let succeeded = read(&resolver.succeeded);
        let failed = read(&resolver.failed);
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
