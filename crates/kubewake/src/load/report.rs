//! What became of a run.

use std::{collections::BTreeMap, fmt, io::Write, path::Path, sync::atomic::Ordering, time::Duration};

use serde_json::{Value, json};

use super::{
    answer::{Answer, Code, Verdict},
    client::Connections,
    histogram::Histogram,
    ids::Seed,
};

/// What one sender counted, and then all together. In requests, except where it says otherwise.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Requests begun.
    pub started: u64,
    /// Requests sent, each time counted.
    pub sent: u64,
    /// Answers that allow to send again.
    pub refusals: u64,
    /// Requests that ended with such an answer.
    pub refused: u64,
    /// Requests that ended in any other way but acknowledged; a lost connection is one.
    pub failed: u64,
    /// Items that acknowledged requests lost by partial success.
    pub rejected_items: u64,
    /// Bytes of bodies sent.
    pub bytes: u64,
    acknowledged: Vec<u64>,
    codes: BTreeMap<Code, u64>,
    latency: Histogram,
    refusal_latency: Histogram,
}

impl Tally {
    /// Counts one answer.
    pub(crate) fn count(&mut self, answer: &Answer, bytes: u64, latency: Duration) {
        self.sent += 1;
        self.bytes += bytes;
        *self.codes.entry(answer.code).or_default() += 1;
        match answer.verdict {
            Verdict::Acknowledged { .. } => self.latency.record(latency),
            Verdict::Retryable(_) if answer.code.is_answer() => {
                self.refusals += 1;
                self.refusal_latency.record(latency);
            }
            Verdict::Retryable(_) | Verdict::Failed => {}
        }
    }

    /// The request with this number was taken.
    pub(crate) fn acknowledge(&mut self, number: u64, rejected_items: u64) {
        self.acknowledged.push(number);
        self.rejected_items += rejected_items;
    }

    /// A request is not sent again.
    pub(crate) fn give_up(&mut self, code: Code) {
        if code.is_answer() {
            self.refused += 1;
        } else {
            self.failed += 1;
        }
    }

    /// Adds what another sender counted.
    pub(crate) fn merge(&mut self, other: Tally) {
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

/// A finished run.
#[derive(Debug)]
pub(crate) struct Report {
    /// Whose ids were used.
    pub seed: Seed,
    /// Items in a request.
    pub items: u64,
    /// Bytes of OTLP in a request.
    pub message_bytes: usize,
    /// How long it took.
    pub elapsed: Duration,
    /// How late a request left, at most.
    pub worst_lag: Duration,
    /// What the senders counted.
    pub tally: Tally,
    /// Connections made and lost.
    pub connections: (u64, u64),
}

impl Report {
    /// Takes the counts of the connections.
    pub(crate) fn connections(connections: &Connections) -> (u64, u64) {
        (connections.opened.load(Ordering::Relaxed), connections.lost.load(Ordering::Relaxed))
    }

    /// Whether there was nobody to speak to.
    pub(super) fn all_failed(&self) -> bool {
        self.tally.failed > 0 && self.tally.refused == 0 && self.acknowledged() == 0
    }

    fn acknowledged(&self) -> u64 {
        self.tally.acknowledged.len() as u64
    }

    /// Acknowledged items a second.
    fn rate(&self) -> f64 {
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

    /// The whole report for programs.
    pub(crate) fn to_json(&self) -> Value {
        let codes: BTreeMap<String, u64> = self.tally.codes.iter().map(|(code, n)| (code.to_string(), *n)).collect();
        json!({
            "seed": self.seed.number(),
            "seconds": self.elapsed.as_secs_f64(),
            "rate": self.rate(),
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

    /// Writes which items were acknowledged: lines of `seed first end`, where `end` is the first that was not.
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

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |share| self.tally.latency.quantile_ms(share).unwrap_or(0.0);
        write!(
            f,
            "{} items acknowledged in {:.1} s ({:.0}/s), {} requests refused, {} failed; p50 {:.1} ms, p99 {:.1} ms",
            self.acknowledged() * self.items,
            self.elapsed.as_secs_f64(),
            self.rate(),
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
        let mut tally = Tally::default();
        [4, 0, 1, 7, 5].into_iter().for_each(|number| tally.acknowledge(number, 0));
        let mut report = Report {
            seed: Seed::new(9),
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
