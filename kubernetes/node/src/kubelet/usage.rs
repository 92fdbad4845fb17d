//! Resource usage of containers, measured on demand.
//!
//! A measurement reads all processes at once and is reused for `MEASUREMENT_TTL`: without requests nothing is
//! measured. CPU usage is the average over a window: since the oldest measurement within it, or since the start
//! of the container if that was within it. Without either there is no value yet, but there will be one the next
//! time.
//!
//! A process belongs to a container if it is in the process group of the container's first process or descends
//! from it. *Not done*: memory that several processes share is counted for each of them.

use std::{
    collections::HashMap,
    fs,
    sync::{Arc, MutexGuard},
    time::{Duration, Instant},
};

use kubewake_runtime::lock::Mutex;
use rustix::param::{clock_ticks_per_second, page_size};

use crate::{
    key::NamespacedKey,
    usage::{ContainerUsage, PodUsage, UsageProvider},
};

/// The time for which a measurement is reused.
const MEASUREMENT_TTL: Duration = Duration::from_millis(500);
/// The most generations between a process and the container's first one.
const MAX_ANCESTRY_DEPTH: usize = 64;

/// Measures the containers of a node. Clones share their state.
#[derive(Clone, Debug)]
pub(super) struct UsageMeter(Arc<Mutex<MeterState>>);

#[derive(Debug)]
struct MeterState {
    window: Duration,
    /// By the id of the first process.
    runs: HashMap<i32, MeteredContainer>,
    measured: Option<Instant>,
}

#[derive(Debug)]
struct MeteredContainer {
    pod: NamespacedKey,
    container: String,
    started: Instant,
    /// The last measurements, oldest first: time, and total CPU time.
    cpu: Vec<(Instant, Duration)>,
    memory_bytes: u64,
}

/// A measured container; unregistered on drop.
#[derive(Debug)]
pub(super) struct MeterRegistration {
    meter: UsageMeter,
    id: i32,
}

impl Drop for MeterRegistration {
    fn drop(&mut self) {
        self.meter.lock_state().runs.remove(&self.id);
    }
}

impl UsageMeter {
    pub(super) fn new(window: Duration) -> Self {
        Self(Arc::new(Mutex::new(MeterState { window, runs: HashMap::new(), measured: None })))
    }

    /// Registers a container at its start, by its first process.
    pub(super) fn register(&self, pod: &NamespacedKey, container: &str, id: i32) -> MeterRegistration {
        let counted = MeteredContainer {
            pod: pod.clone(),
            container: container.to_owned(),
            started: Instant::now(),
            cpu: Vec::new(),
            memory_bytes: 0,
        };
        self.lock_state().runs.insert(id, counted);
        MeterRegistration { meter: self.clone(), id }
    }

    fn lock_state(&self) -> MutexGuard<'_, MeterState> {
        self.0.lock()
    }
}

impl UsageProvider for UsageMeter {
    fn pod_usage(&self, pod: &NamespacedKey) -> Option<PodUsage> {
        let mut state = self.lock_state();
        if state.measured.is_none_or(|at| at.elapsed() > MEASUREMENT_TTL) {
            state.measure(&read_processes());
        }
        let window = state.window;
        let mut containers = Vec::new();
        for counted in state.runs.values().filter(|counted| counted.pod == *pod) {
            containers.push((counted.container.clone(), counted.usage(window)?));
        }
        containers.sort_by(|a, b| a.0.cmp(&b.0));
        (!containers.is_empty()).then_some(PodUsage { containers })
    }
}

impl MeterState {
    fn measure(&mut self, processes: &HashMap<i32, ProcessStat>) {
        let now = Instant::now();
        let mut sums: HashMap<i32, (Duration, u64)> = HashMap::new();
        for process in processes.values() {
            if let Some(id) = self.owning_container(process, processes) {
                let sum = sums.entry(id).or_default();
                sum.0 += process.cpu;
                sum.1 += process.memory_bytes;
            }
        }
        for (id, counted) in &mut self.runs {
            let (cpu, memory_bytes) = sums.get(id).copied().unwrap_or_default();
            counted.memory_bytes = memory_bytes;
            counted.cpu.push((now, cpu));
            // One measurement from before the window is kept, as its start.
            let old = counted.cpu.iter().take_while(|(at, _)| now.duration_since(*at) > self.window).count();
            counted.cpu.drain(..old.saturating_sub(1));
        }
        self.measured = Some(now);
    }

    /// The first process of the container to which a process belongs.
    fn owning_container(&self, process: &ProcessStat, processes: &HashMap<i32, ProcessStat>) -> Option<i32> {
        let mut at = process;
        for _ in 0..MAX_ANCESTRY_DEPTH {
            if self.runs.contains_key(&at.group) {
                return Some(at.group);
            }
            at = processes.get(&at.parent)?;
        }
        None
    }
}

impl MeteredContainer {
    fn usage(&self, window: Duration) -> Option<ContainerUsage> {
        let (now, used) = *self.cpu.last()?;
        let (then, before) = match self.cpu.first()? {
            (at, _) if *at == now && now.duration_since(self.started) <= window => (self.started, Duration::ZERO),
            first => *first,
        };
        let passed = now.duration_since(then);
        if passed.is_zero() {
            return None;
        }
        let cpu = used.saturating_sub(before).as_secs_f64() / passed.as_secs_f64();
        // The number of cores is small.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is small and not negative")]
        let cpu_nanocores = (cpu * 1e9) as u64;
        Some(ContainerUsage { cpu_nanocores, memory_bytes: self.memory_bytes, window: passed })
    }
}

/// The statistics of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcessStat {
    parent: i32,
    group: i32,
    /// Own CPU time, and that of reaped children.
    cpu: Duration,
    memory_bytes: u64,
}

/// All processes by their ids.
fn read_processes() -> HashMap<i32, ProcessStat> {
    let Ok(entries) = fs::read_dir("/proc") else { return HashMap::new() };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id: i32| Some((id, ProcessStat::parse(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)?)))
        .collect()
}

impl ProcessStat {
    /// Parses a line of /proc/PID/stat. Its second field is a name in parentheses that may contain anything.
    fn parse(stat: &str) -> Option<Self> {
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<i64>().ok();
        let ticks = u64::try_from(number(11)? + number(12)? + number(13)? + number(14)?).ok()?;
        Some(Self {
            parent: number(1)?.try_into().ok()?,
            group: number(2)?.try_into().ok()?,
            cpu: Duration::from_millis(ticks * 1000 / clock_ticks_per_second()),
            memory_bytes: u64::try_from(number(21)?).ok()? * page_size() as u64,
        })
    }
}

#[cfg(test)]
mod tests;
