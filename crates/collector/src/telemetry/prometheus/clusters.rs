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
        let help = "Bytes that are held of pods, about.";
        page.gauge("kubewake_k8s_metadata_bytes", help, &processor, read(&stats.held));
        let help = "Number of objects of the cluster that there was no room for.";
        page.counter("kubewake_k8s_metadata_left_out", help, &processor, read(&stats.left_out));
        let help = "Number of times that the cluster could not be asked.";
        page.counter("kubewake_k8s_watch_failures", help, &processor, read(&stats.failures));
    }
}
