//! What the sink has received.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{BufWriter, Write},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::Context;
use bytes::Bytes;
use kubewake_otlp::Signal;
use serde_json::{Value, json};

use super::{items, seen::Seen};
use crate::load::{histogram::Histogram, ids::Seed};

/// Traces beyond this are not told apart; each costs about 40 bytes.
const MAX_TRACES: usize = 2_000_000;

/// All counts, behind one lock: a request of thousands of items takes it once.
#[derive(Debug)]
pub(super) struct Counters {
    counts: Mutex<Counts>,
    out: Option<Mutex<BufWriter<File>>>,
}

#[derive(Debug)]
struct Counts {
    signals: [Totals; 3],
    /// Requests answered with an error on purpose, and those that could not be read.
    failed: u64,
    unreadable: u64,
    seen: Seen,
    /// From the time in an item that the generator made to its arrival here.
    latency: Histogram,
    since: Instant,
    /// Items of each trace, if they are to be counted.
    traces: Option<HashMap<[u8; 16], u32>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    requests: u64,
    items: u64,
    bytes: u64,
}

impl Counts {
    fn new(traces: bool) -> Self {
        Self {
            signals: [Totals::default(); 3],
            failed: 0,
            unreadable: 0,
            seen: Seen::default(),
            latency: Histogram::default(),
            since: Instant::now(),
            traces: traces.then(HashMap::new),
        }
    }

    fn add(&mut self, signal: Signal, request: &[u8]) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let mut count = 0;
        // Neighbours have the same time, so that most cost a comparison.
        let (mut time, mut times) = (0, 0);
        items::each(signal, request, |item| {
            count += 1;
            if let (Some(traces), Ok(id)) = (&mut self.traces, item.trace_id.try_into())
                && (traces.len() < MAX_TRACES || traces.contains_key(&id))
            {
                *traces.entry(id).or_default() += 1;
            }
            if self.seen.note(signal, item.trace_id, item.span_id) {
                if item.time != time {
                    self.latency.record_many(Duration::from_nanos(now.saturating_sub(time)), times);
                    (time, times) = (item.time, 0);
                }
                times += 1;
            }
        });
        self.latency.record_many(Duration::from_nanos(now.saturating_sub(time)), times);
        if let Some(totals) = self.signals.get_mut(signal as usize) {
            totals.requests += 1;
            totals.items += count;
            totals.bytes += request.len() as u64;
        }
        count
    }
}

impl Counters {
    /// Nothing yet. Requests are appended to a file, if one is given.
    pub(super) fn new(out: Option<&Path>, traces: bool) -> anyhow::Result<Self> {
        let open = |path: &Path| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.map(|file| Mutex::new(BufWriter::new(file))).with_context(|| format!("cannot open {}", path.display()))
        };
        Ok(Self { counts: Mutex::new(Counts::new(traces)), out: out.map(open).transpose()? })
    }

    /// Counts a request that is about to be acknowledged.
    pub(super) fn add(&self, signal: Signal, request: &Bytes) -> std::io::Result<()> {
        self.write(signal, request)?;
        self.lock().add(signal, request);
        Ok(())
    }

    /// Counts a request that failed on purpose.
    pub(super) fn add_failed(&self) {
        self.lock().failed += 1;
    }

    /// Counts a request that could not be read.
    pub(super) fn add_unreadable(&self) {
        self.lock().unreadable += 1;
    }

    /// Forgets everything.
    pub(super) fn reset(&self) {
        let mut counts = self.lock();
        *counts = Counts::new(counts.traces.is_some());
    }

    /// Brings what was received to the file.
    pub(super) fn flush(&self) -> std::io::Result<()> {
        self.out.as_ref().map_or(Ok(()), |out| lock(out).flush())
    }

    /// How many items of each trace there were, by its id; nothing if they are not counted.
    pub(super) fn traces(&self) -> Value {
        let hex = |id: &[u8; 16]| format!("{:032x}", u128::from_be_bytes(*id));
        let traces = self.lock().traces.clone().unwrap_or_default();
        traces.iter().map(|(id, count)| (hex(id), Value::from(*count))).collect()
    }

    /// The counts as JSON.
    pub(super) fn to_json(&self) -> Value {
        let counts = self.lock();
        let sum = |of: fn(&Totals) -> u64| counts.signals.iter().map(of).sum::<u64>();
        let signals = Signal::ALL.into_iter().zip(&counts.signals).map(|(signal, totals)| {
            let totals = json!({ "requests": totals.requests, "items": totals.items, "bytes": totals.bytes });
            (signal.name().to_owned(), totals)
        });
        let runs = counts.seen.runs().into_iter().map(|(seed, (distinct, duplicates))| {
            (seed.to_string(), json!({ "distinct": distinct, "duplicates": duplicates }))
        });
        json!({
            "requests": sum(|totals| totals.requests),
            "items": sum(|totals| totals.items),
            "bytes": sum(|totals| totals.bytes),
            "signals": signals.collect::<serde_json::Map<_, _>>(),
            "distinct": counts.seen.distinct,
            "duplicates": counts.seen.duplicates,
            "untracked": counts.seen.untracked,
            "runs": runs.collect::<serde_json::Map<_, _>>(),
            "failed": counts.failed,
            "unreadable": counts.unreadable,
            "latency_ms": counts.latency.to_json(),
            "seconds": counts.since.elapsed().as_secs_f64(),
        })
    }

    /// Which of these ranges of items have not arrived, as JSON.
    pub(super) fn missing(&self, ranges: &[(Seed, u64, u64)]) -> Value {
        let counts = self.lock();
        let (mut expected, mut missing, mut some) = (0, 0, Vec::new());
        for (seed, first, end) in ranges {
            expected += end.saturating_sub(*first);
            missing += counts.seen.missing(*seed, *first, *end, &mut some);
        }
        json!({ "expected": expected, "missing": missing, "first_missing": some })
    }

    fn write(&self, signal: Signal, request: &[u8]) -> std::io::Result<()> {
        let Some(out) = &self.out else { return Ok(()) };
        let mark = match signal {
            Signal::Traces => b't',
            Signal::Metrics => b'm',
            Signal::Logs => b'l',
        };
        let mut out = lock(out);
        out.write_all(&[mark])?;
        out.write_all(&(request.len() as u32).to_be_bytes())?;
        out.write_all(request)?;
        // A test reads the file as soon as the sender has its answer.
        out.flush()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        lock(&self.counts)
    }
}

/// Counts are valid at any moment, so a panic elsewhere does not spoil them.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
