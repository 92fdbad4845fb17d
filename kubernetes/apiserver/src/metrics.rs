//! Metrics of the server, under kube-apiserver's names.

use std::{
    sync::atomic::{AtomicI64, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use http::StatusCode;
use kubewake_runtime::prometheus::{LabelSet, MetricFamily, MetricKind, MetricsText};

/// Upper bounds of the histogram of commit-to-delivery times, in seconds.
const LATENCY_BUCKETS_SECONDS: [f64; 10] = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];

#[derive(Debug, Default)]
pub struct ApiServerMetrics {
    in_flight: AtomicI64,
    /// Requests by the first digit of their status, from 1 to 5.
    by_class: [AtomicU64; 6],
    request_nanos: AtomicU64,
    delivery: LatencyHistogram,
}

#[derive(Debug, Default)]
struct LatencyHistogram {
    buckets: [AtomicU64; LATENCY_BUCKETS_SECONDS.len()],
    count: AtomicU64,
    nanos: AtomicU64,
}

#[derive(Debug)]
pub struct InFlightGuard<'a>(&'a ApiServerMetrics);

impl ApiServerMetrics {
    pub fn request(&self) -> InFlightGuard<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlightGuard(self)
    }

    /// Records how long after its commit an event was delivered to a watcher.
    pub fn observe_delivery(&self, committed: Instant) {
        self.delivery.observe(committed.elapsed());
    }

    /// The page, with more metrics at its end.
    pub fn text(&self, more: &[(&str, MetricKind, &str, u64)]) -> String {
        let mut page = MetricsText::default();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let in_flight = self.in_flight.load(Ordering::Relaxed);
        page.single("apiserver_current_inflight_requests", MetricKind::Gauge, "Requests in flight.", in_flight);
        let help = "Requests by the class of the response status.";
        let mut requests = page.family("apiserver_request_total", MetricKind::Counter, help);
        for (class, count) in self.by_class.iter().enumerate().skip(1) {
            requests.sample(&LabelSet::new(&[("code", &format!("{class}xx"))]), load(count));
        }
        let seconds = Duration::from_nanos(load(&self.request_nanos)).as_secs_f64();
        let help = "Total time spent on requests.";
        page.single("apiserver_request_duration_seconds_sum", MetricKind::Counter, help, seconds);
        let help = "Time from the commit of a change to its delivery to a watcher.";
        self.delivery.write(page.family("kubewake_apiserver_watch_delivery_seconds", MetricKind::Histogram, help));
        for (name, kind, help, value) in more {
            page.single(name, *kind, help, value);
        }
        page.into_text()
    }
}

impl InFlightGuard<'_> {
    pub fn finish(self, took: Duration, status: StatusCode) {
        if let Some(count) = self.0.by_class.get(usize::from(status.as_u16() / 100)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.0.request_nanos.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl LatencyHistogram {
    fn observe(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        if let Some((_, bucket)) =
            LATENCY_BUCKETS_SECONDS.iter().zip(&self.buckets).find(|(bound, _)| seconds <= **bound)
        {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn write(&self, mut family: MetricFamily<'_>) {
        let mut below = 0;
        let buckets = LATENCY_BUCKETS_SECONDS.iter().zip(&self.buckets).map(|(bound, bucket)| {
            below += bucket.load(Ordering::Relaxed);
            (*bound, below)
        });
        // Read before the total, so that an observation in between does not make a bucket larger than the total.
        let buckets: Vec<(f64, u64)> = buckets.collect();
        let seconds = Duration::from_nanos(self.nanos.load(Ordering::Relaxed)).as_secs_f64();
        family.histogram(&LabelSet::default(), buckets, seconds, self.count.load(Ordering::Relaxed));
    }
}
