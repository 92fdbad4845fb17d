//! What containers use of the machine, measured when somebody asks.
//!
//! All processes are looked at in one go, and the result serves everybody who asks within [a moment](FRESH): nothing is measured, and
//! nothing costs anything, while nobody wants to know. CPU is the average over a window: since the oldest measurement within it, or since the
//! container started if that was within it. Without either there is no answer yet, and there will be one the next time.
//!
//! A process belongs to a container if it is in the process group of the container's first process or descends from it.
//! *Not done*: memory that several processes share is counted for each.

use std::{
    collections::HashMap,
    fs,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rustix::param::{clock_ticks_per_second, page_size};

use crate::{
    key::Key,
    usage::{ContainerUsage, PodUsage, Usage},
};

/// A measurement serves for so long.
const FRESH: Duration = Duration::from_millis(500);
/// How many generations a process may be away from its container's first.
const DEEPEST: usize = 64;

/// Measures the containers of a node. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Meter(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    window: Duration,
    /// By the id of the first process.
    runs: HashMap<i32, Counted>,
    measured: Option<Instant>,
}

#[derive(Debug)]
struct Counted {
    pod: Key,
    container: String,
    started: Instant,
    /// The last measurements, first to last: when, and how much CPU time was used in all.
    cpu: Vec<(Instant, Duration)>,
    memory_bytes: u64,
}

/// A container that is counted until this is dropped.
#[derive(Debug)]
pub(super) struct Counting {
    meter: Meter,
    id: i32,
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.meter.state().runs.remove(&self.id);
    }
}

impl Meter {
    /// Averages over this time.
    pub(super) fn new(window: Duration) -> Self {
        Self(Arc::new(Mutex::new(State { window, runs: HashMap::new(), measured: None })))
    }

    /// Counts a container from its start, by its first process.
    pub(super) fn count(&self, pod: &Key, container: &str, id: i32) -> Counting {
        let counted = Counted {
            pod: pod.clone(),
            container: container.to_owned(),
            started: Instant::now(),
            cpu: Vec::new(),
            memory_bytes: 0,
        };
        self.state().runs.insert(id, counted);
        Counting { meter: self.clone(), id }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Usage for Meter {
    fn of(&self, pod: &Key) -> Option<PodUsage> {
        let mut state = self.state();
        if state.measured.is_none_or(|at| at.elapsed() > FRESH) {
            state.measure(&processes());
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

impl State {
    fn measure(&mut self, processes: &HashMap<i32, Process>) {
        let now = Instant::now();
        let mut sums: HashMap<i32, (Duration, u64)> = HashMap::new();
        for process in processes.values() {
            if let Some(id) = self.owner(process, processes) {
                let sum = sums.entry(id).or_default();
                sum.0 += process.cpu;
                sum.1 += process.memory_bytes;
            }
        }
        for (id, counted) in &mut self.runs {
            let (cpu, memory_bytes) = sums.get(id).copied().unwrap_or_default();
            counted.memory_bytes = memory_bytes;
            counted.cpu.push((now, cpu));
            // One that is older than the window is kept, so that there is always one at its beginning.
            let old = counted.cpu.iter().take_while(|(at, _)| now.duration_since(*at) > self.window).count();
            counted.cpu.drain(..old.saturating_sub(1));
        }
        self.measured = Some(now);
    }

    /// The first process of the container that a process belongs to.
    fn owner(&self, process: &Process, processes: &HashMap<i32, Process>) -> Option<i32> {
        let mut at = process;
        for _ in 0..DEEPEST {
            if self.runs.contains_key(&at.group) {
                return Some(at.group);
            }
            at = processes.get(&at.parent)?;
        }
        None
    }
}

impl Counted {
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
        // A number of cores is small.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is small and not negative")]
        let cpu_nanocores = (cpu * 1e9) as u64;
        Some(ContainerUsage { cpu_nanocores, memory_bytes: self.memory_bytes, window: passed })
    }
}

/// What the system says of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    parent: i32,
    group: i32,
    /// Its own, and that of its children that have ended.
    cpu: Duration,
    memory_bytes: u64,
}

/// All processes by their ids.
fn processes() -> HashMap<i32, Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return HashMap::new() };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id: i32| Some((id, Process::parse(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)?)))
        .collect()
}

impl Process {
    /// A line of /proc/PID/stat, whose second field is a name that may hold anything, in parentheses.
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
