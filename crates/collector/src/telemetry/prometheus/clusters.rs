//! Metrics of processors that watch a cluster, under the names of the Collector's contrib repository.

use std::sync::atomic::Ordering;

use super::metrics_page::MetricsPage;
use crate::core::StatsRegistry;

pub(super) fn write_metrics(page: &mut MetricsPage, registry: &StatsRegistry) {
    for (id, stats) in registry.clusters() {
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let size = "otelcol_otelsvc_k8s_pod_table_size";
        page.gauge(size, "Size of table containing pod info [Development]", &[], read(&stats.pods));
        for (what, help, counter) in [
            ("added", "Number of pod add events received [Development]", &stats.added),
            ("updated", "Number of pod update events received [Development]", &stats.updated),
            ("deleted", "Number of pod delete events received [Development]", &stats.deleted),
        ] {
            page.counter(&format!("otelcol_otelsvc_k8s_pod_{what}"), help, &[], read(counter));
        }
        for (status, found) in [("success", true), ("error", false)] {
            let help = "Number of pod associations performed. [Development]";
            let labels = [("status", status)];
            page.counter("otelcol_k8s_pod_association", help, &labels, read(stats.associations(found)));
        }
        let processor = [("processor", id.as_str())];
        let help = "Approximate number of bytes of pod metadata in memory.";
        page.gauge("kubewake_k8s_metadata_bytes", help, &processor, read(&stats.held));
        let help = "Number of objects of the cluster that are not in memory for lack of room.";
        page.counter("kubewake_k8s_metadata_left_out", help, &processor, read(&stats.left_out));
        let help = "Number of failed requests to the Kubernetes API.";
        page.counter("kubewake_k8s_watch_failures", help, &processor, read(&stats.failures));
    }
}
