//! Aggregates the counters of many collectors into rates of one pipeline.

use std::collections::{BTreeMap, VecDeque};

use kubewake_status::PipelineReport;

/// Number of points: five minutes.
const MAX_POINTS: usize = 150;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct DeliveryTotals {
    pub(super) received: u64,
    pub(super) sent: u64,
    pub(super) dropped: u64,
    pub(super) queued: u64,
}

#[derive(Clone, Debug, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PipelineSeries {
    /// Milliseconds since 1970.
    at: VecDeque<u64>,
    received_per_second: VecDeque<f64>,
    sent_per_second: VecDeque<f64>,
    dropped_per_second: VecDeque<f64>,
    buffer_fill: VecDeque<f64>,
}

/// A pipeline with the history of its counters.
#[derive(Clone, Debug, Default)]
pub(super) struct PipelineHistory {
    pub(super) series: PipelineSeries,
    pub(super) totals: DeliveryTotals,
    pub(super) last_error: Option<String>,
    /// The last counters of each collector, by pod.
    last_by_collector: BTreeMap<String, DeliveryTotals>,
}

impl PipelineHistory {
    /// Adds the reports of all collectors at `at`, in milliseconds.
    pub(super) fn add(&mut self, at: u64, reports: &BTreeMap<String, &PipelineReport>) {
        let now: BTreeMap<String, DeliveryTotals> =
            reports.iter().map(|(pod, report)| (pod.clone(), sum_totals(report))).collect();
        let sum = |field: fn(&DeliveryTotals) -> u64| now.values().map(field).sum::<u64>();
        self.totals = DeliveryTotals {
            received: sum(|t| t.received),
            sent: sum(|t| t.sent),
            dropped: sum(|t| t.dropped),
            queued: sum(|t| t.queued),
        };
        self.last_error = reports.values().find_map(|report| current_failure(report));
        let since = self.series.at.back().map(|before| at.saturating_sub(*before)).filter(|millis| *millis > 0);
        let rate = |field: fn(&DeliveryTotals) -> u64| {
            let growth: u64 = now
                .iter()
                .map(|(pod, totals)| counter_increase(self.last_by_collector.get(pod).map(field), field(totals)))
                .sum();
            since.map_or(0.0, |millis| growth as f64 * 1000.0 / millis as f64)
        };
        let rates = (rate(|t| t.received), rate(|t| t.sent), rate(|t| t.dropped));
        let fill = reports.values().map(|report| queue_fill(report)).fold(0.0, f64::max);
        self.series.push(at, rates, fill);
        self.last_by_collector = now;
    }
}

impl PipelineSeries {
    fn push(&mut self, at: u64, (received, sent, dropped): (f64, f64, f64), fill: f64) {
        if self.at.len() == MAX_POINTS {
            self.at.pop_front();
        }
        self.at.push_back(at);
        let rings = [
            &mut self.received_per_second,
            &mut self.sent_per_second,
            &mut self.dropped_per_second,
            &mut self.buffer_fill,
        ];
        for (ring, value) in rings.into_iter().zip([received, sent, dropped, fill]) {
            if ring.len() == MAX_POINTS {
                ring.pop_front();
            }
            ring.push_back(value);
        }
    }
}

/// A new collector adds nothing to a rate. A counter that decreased means that the collector was restarted.
fn counter_increase(before: Option<u64>, now: u64) -> u64 {
    before.map_or(0, |before| now.checked_sub(before).unwrap_or(now))
}

fn sum_totals(report: &PipelineReport) -> DeliveryTotals {
    DeliveryTotals {
        received: report.received,
        sent: report.delivered,
        dropped: report.dropped.values().sum(),
        queued: report.exporters.values().map(|exporter| exporter.queue_size).sum(),
    }
}

fn queue_fill(report: &PipelineReport) -> f64 {
    let queues = report.exporters.values().filter(|exporter| exporter.queue_capacity > 0);
    queues.map(|exporter| (exporter.queue_size as f64 / exporter.queue_capacity as f64).min(1.0)).fold(0.0, f64::max)
}

/// The current failure as the collector reports it: its class, and the backend's response.
fn current_failure(report: &PipelineReport) -> Option<String> {
    let fails = report.failures > 0 && !matches!(report.last_error.as_str(), "" | "none");
    fails.then(|| match &report.last_error_code {
        Some(code) => format!("{} ({code})", report.last_error),
        None => report.last_error.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(received: u64, delivered: u64) -> PipelineReport {
        PipelineReport { received, delivered, ..PipelineReport::default() }
    }

    #[test]
    fn rates_survive_restarts_and_new_collectors() {
        let mut course = PipelineHistory::default();
        let mut add = |at, reports: &[(&str, PipelineReport)]| {
            let reports = reports.iter().map(|(pod, report)| ((*pod).to_owned(), report)).collect();
            course.add(at, &reports);
            course.clone()
        };
        add(1000, &[("a", report(100, 90))]);
        let course = add(3000, &[("a", report(300, 190)), ("b", report(5000, 5000))]);
        assert_eq!(course.series.received_per_second, [0.0, 100.0]);
        assert_eq!(course.series.sent_per_second, [0.0, 50.0]);
        assert_eq!(course.totals.received, 5300);
        // The first collector was restarted, the second one is gone.
        let course = add(5000, &[("a", report(20, 20))]);
        assert_eq!(course.series.received_per_second.back(), Some(&10.0));
        (0..1000).for_each(|n| drop(add(6000 + n, &[])));
        assert_eq!(add(9000, &[]).series.buffer_fill.len(), MAX_POINTS);
    }

    #[test]
    fn what_fails_is_said_only_while_it_fails() {
        let failing = PipelineReport {
            failures: 2,
            last_error: "authentication".into(),
            last_error_code: Some("grpc:16".into()),
            ..report(1, 0)
        };
        assert_eq!(current_failure(&failing).as_deref(), Some("authentication (grpc:16)"));
        assert_eq!(current_failure(&PipelineReport { failures: 0, ..failing }), None);
    }
}
