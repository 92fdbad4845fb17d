//! Counts what the sink has received.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{BufWriter, Write},
    path::Path,
    sync::MutexGuard,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::Context;
use bytes::Bytes;
use kubewake_otlp::Signal;
use kubewake_runtime::lock::Mutex;
use serde_json::{Value, json};

use super::{items, seen_items::SeenItems};
use crate::load::{histogram::MicrosHistogram, ids::RunSeed};

/// Further traces are not counted individually; each costs about 40 bytes.
const MAX_TRACES: usize = 2_000_000;

/// All counters, behind one lock: a request of thousands of items takes it once.
#[derive(Debug)]
pub(super) struct SinkCounters {
    counts: Mutex<CounterState>,
    capture_file: Option<Mutex<BufWriter<File>>>,
}

#[derive(Debug)]
struct CounterState {
    signals: [SignalTotals; 3],
    /// Requests that failed on purpose.
    failed: u64,
    unreadable: u64,
    seen: SeenItems,
    /// From the time in a generated item to its arrival.
    latency: MicrosHistogram,
    since: Instant,
    /// Items of each trace, if they are counted.
    traces: Option<HashMap<[u8; 16], u32>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct SignalTotals {
    requests: u64,
    items: u64,
    bytes: u64,
}

impl CounterState {
    fn new(traces: bool) -> Self {
        Self {
            signals: [SignalTotals::default(); 3],
            failed: 0,
            unreadable: 0,
            seen: SeenItems::default(),
            latency: MicrosHistogram::default(),
            since: Instant::now(),
            traces: traces.then(HashMap::new),
        }
    }

    fn add(&mut self, signal: Signal, request: &[u8]) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let mut count = 0;
        // Consecutive items mostly have the same time, which costs only a comparison.
        let mut time = 0;
        let mut times = 0;
        items::for_each_item(signal, request, |item| {
            count += 1;
            if let (Some(traces), Ok(id)) = (&mut self.traces, item.trace_id.try_into())
                && (traces.len() < MAX_TRACES || traces.contains_key(&id))
            {
                *traces.entry(id).or_default() += 1;
            }
            if self.seen.record(signal, item.trace_id, item.span_id) {
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

impl SinkCounters {
    /// Creates the counters. Requests are appended to a file, if one is given.
    pub(super) fn new(out: Option<&Path>, traces: bool) -> anyhow::Result<Self> {
        let open = |path: &Path| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.map(|file| Mutex::new(BufWriter::new(file)))
                .with_context(|| format!("failed to open {}", path.display()))
        };
        Ok(Self { counts: Mutex::new(CounterState::new(traces)), capture_file: out.map(open).transpose()? })
    }

    /// Counts a request that is about to be acknowledged.
    pub(super) fn add(&self, signal: Signal, request: &Bytes) -> std::io::Result<()> {
        self.write_capture(signal, request)?;
        self.lock().add(signal, request);
        Ok(())
    }

    /// Counts a request that failed on purpose.
    pub(super) fn add_failed(&self) {
        self.lock().failed += 1;
    }

    /// Counts a request that could not be decoded.
    pub(super) fn add_unreadable(&self) {
        self.lock().unreadable += 1;
    }

    pub(super) fn reset(&self) {
        let mut counts = self.lock();
        *counts = CounterState::new(counts.traces.is_some());
    }

    /// Flushes the received requests to the file.
    pub(super) fn flush(&self) -> std::io::Result<()> {
        self.capture_file.as_ref().map_or(Ok(()), |out| out.lock().flush())
    }

    /// The number of items of each trace, by its id; empty if they are not counted.
    pub(super) fn traces(&self) -> Value {
        let hex = |id: &[u8; 16]| format!("{:032x}", u128::from_be_bytes(*id));
        let traces = self.lock().traces.clone().unwrap_or_default();
        traces.iter().map(|(id, count)| (hex(id), Value::from(*count))).collect()
    }

    pub(super) fn to_json(&self) -> Value {
        let counts = self.lock();
        let sum = |of: fn(&SignalTotals) -> u64| counts.signals.iter().map(of).sum::<u64>();
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

    /// The items in these ranges that have not arrived, as JSON.
    pub(super) fn missing(&self, ranges: &[(RunSeed, u64, u64)]) -> Value {
        let counts = self.lock();
        let mut expected = 0;
        let mut missing = 0;
        let mut some = Vec::new();
        for (seed, first, end) in ranges {
            expected += end.saturating_sub(*first);
            missing += counts.seen.missing(*seed, *first, *end, &mut some);
        }
        json!({ "expected": expected, "missing": missing, "first_missing": some })
    }

    fn write_capture(&self, signal: Signal, request: &[u8]) -> std::io::Result<()> {
        let Some(out) = &self.capture_file else { return Ok(()) };
        let mark = match signal {
            Signal::Traces => b't',
            Signal::Metrics => b'm',
            Signal::Logs => b'l',
        };
        let mut out = out.lock();
        out.write_all(&[mark])?;
        out.write_all(&(request.len() as u32).to_be_bytes())?;
        out.write_all(request)?;
        // A test reads the file as soon as the sender has its response.
        out.flush()
    }

    fn lock(&self) -> MutexGuard<'_, CounterState> {
        self.counts.lock()
    }
}
