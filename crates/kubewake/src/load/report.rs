//! The report of a run.

use std::{collections::BTreeMap, fmt, io::Write, path::Path, sync::atomic::Ordering, time::Duration};

use serde_json::{Value, json};

use super::{
    client::ConnectionCounters,
    histogram::MicrosHistogram,
    ids::RunSeed,
    response::{ExportResponse, ResponseCode, ResponseDisposition},
};

/// Counts of one sender, and of all together; in requests unless stated otherwise.
#[derive(Debug, Default)]
pub(crate) struct RequestTally {
    pub started: u64,
    /// Requests sent, including retries.
    pub sent: u64,
    /// Retryable responses.
    pub refusals: u64,
    /// Requests that ended with a retryable response.
    pub refused: u64,
    /// Requests that ended otherwise without an acknowledgement, such as by a lost connection.
    pub failed: u64,
    /// Items in acknowledged requests that a partial success rejected.
    pub rejected_items: u64,
    /// Bytes of request bodies.
    pub bytes: u64,
    acknowledged: Vec<u64>,
    codes: BTreeMap<ResponseCode, u64>,
    latency: MicrosHistogram,
    refusal_latency: MicrosHistogram,
}

impl RequestTally {
    pub(crate) fn record_response(&mut self, answer: &ExportResponse, bytes: u64, latency: Duration) {
        self.sent += 1;
        self.bytes += bytes;
        *self.codes.entry(answer.code).or_default() += 1;
        match answer.disposition {
            ResponseDisposition::Acknowledged { .. } => self.latency.record(latency),
            ResponseDisposition::Retryable(_) if answer.code.is_response() => {
                self.refusals += 1;
                self.refusal_latency.record(latency);
            }
            ResponseDisposition::Retryable(_) | ResponseDisposition::Failed => {}
        }
    }

    /// Records that the request with this number was acknowledged.
    pub(crate) fn record_acknowledged(&mut self, number: u64, rejected_items: u64) {
        self.acknowledged.push(number);
        self.rejected_items += rejected_items;
    }

    /// Records a request that is not retried any more.
    pub(crate) fn record_abandoned(&mut self, code: ResponseCode) {
        if code.is_response() {
            self.refused += 1;
        } else {
            self.failed += 1;
        }
    }

    /// Adds the counts of another sender.
    pub(crate) fn merge(&mut self, other: RequestTally) {
        self.started += other.started;
        self.sent += other.sent;
        self.refusals += other.refusals;
        self.refused += other.refused;
        self.failed += other.failed;
        self.rejected_items += other.rejected_items;
        self.bytes += other.bytes;
        self.acknowledged.extend(other.acknowledged);
        other.codes.into_iter().for_each(|(code, count)| *self.codes.entry(code).or_default() += count);
        self.latency.merge(&other.latency);
        self.refusal_latency.merge(&other.refusal_latency);
    }
}

#[derive(Debug)]
pub(crate) struct LoadRunReport {
    pub seed: RunSeed,
    pub items: u64,
    /// Bytes of an OTLP request.
    pub message_bytes: usize,
    pub elapsed: Duration,
    /// Maximum delay of a request beyond its schedule.
    pub worst_lag: Duration,
    pub tally: RequestTally,
    pub connections: (u64, u64),
}

impl LoadRunReport {
    /// Established and lost connections.
    pub(crate) fn connection_counts(connections: &ConnectionCounters) -> (u64, u64) {
        (connections.opened.load(Ordering::Relaxed), connections.lost.load(Ordering::Relaxed))
    }

    /// Whether every request failed, and none was acknowledged or refused.
    pub(super) fn all_failed(&self) -> bool {
        self.tally.failed > 0 && self.tally.refused == 0 && self.acknowledged() == 0
    }

    fn acknowledged(&self) -> u64 {
        self.tally.acknowledged.len() as u64
    }

    fn items_per_second(&self) -> f64 {
        (self.acknowledged() * self.items) as f64 / self.elapsed.as_secs_f64().max(f64::EPSILON)
    }

    fn counts(&self, unit: u64) -> Value {
        json!({
            "started": self.tally.started * unit,
            "sent": self.tally.sent * unit,
            "acknowledged": self.acknowledged() * unit,
            "refused": self.tally.refused * unit,
            "failed": self.tally.failed * unit,
            "refusals": self.tally.refusals * unit,
        })
    }

    pub(crate) fn to_json(&self) -> Value {
        let codes: BTreeMap<String, u64> = self.tally.codes.iter().map(|(code, n)| (code.to_string(), *n)).collect();
        json!({
            "seed": self.seed.number(),
            "seconds": self.elapsed.as_secs_f64(),
            "rate": self.items_per_second(),
            "requests": self.counts(1),
            "items": self.counts(self.items),
            "rejected_items": self.tally.rejected_items,
            "bytes": self.tally.bytes,
            "message_bytes": self.message_bytes,
            "latency_ms": self.tally.latency.to_json(),
            "refusal_latency_ms": self.tally.refusal_latency.to_json(),
            "codes": codes,
            "worst_lag_ms": self.worst_lag.as_secs_f64() * 1000.0,
            "connections": { "opened": self.connections.0, "lost": self.connections.1 },
        })
    }

    /// Writes the acknowledged items as lines of `seed first end`, where `end` is exclusive.
    pub(crate) fn write_acknowledged(&mut self, path: &Path) -> std::io::Result<()> {
        self.tally.acknowledged.sort_unstable();
        let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
        for run in self.tally.acknowledged.chunk_by(|a, b| a + 1 == *b) {
            if let (Some(first), Some(last)) = (run.first(), run.last()) {
                writeln!(file, "{} {} {}", self.seed.number(), first * self.items, (last + 1) * self.items)?;
            }
        }
        file.flush()
    }
}

impl fmt::Display for LoadRunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |share| self.tally.latency.quantile_ms(share).unwrap_or(0.0);
        write!(
            f,
            "{} items acknowledged in {:.1} s ({:.0}/s), {} requests refused, {} failed; p50 {:.1} ms, p99 {:.1} ms",
            self.acknowledged() * self.items,
            self.elapsed.as_secs_f64(),
            self.items_per_second(),
            self.tally.refused,
            self.tally.failed,
            ms(0.5),
            ms(0.99),
        )?;
        for (code, count) in &self.tally.codes {
            write!(f, "; {code} {count}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledged_requests_become_ranges_of_items() {
        let mut tally = RequestTally::default();
        [4, 0, 1, 7, 5].into_iter().for_each(|number| tally.record_acknowledged(number, 0));
        let mut report = LoadRunReport {
            seed: RunSeed::new(9),
            items: 10,
            message_bytes: 0,
            elapsed: Duration::from_secs(1),
            worst_lag: Duration::ZERO,
            tally,
            connections: (1, 0),
        };
        let file = std::env::temp_dir().join(format!("kubewake-acked-{}", std::process::id()));
        report.write_acknowledged(&file).unwrap();
        let written = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(written, "9 0 20\n9 40 60\n9 70 80\n");
    }
}
