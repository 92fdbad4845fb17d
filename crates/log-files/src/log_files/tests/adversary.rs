//! What kubelets, editors, disks and crashes do, in any order, against a model.
//!
//! Every log is a sequence of numbered lines. The model knows which lines exist in files, and which may be lost because
//! they were destroyed while nobody had their file open. After each run, each output has all other lines, in order and
//! once (more than once only after a kill), and the reported losses are exactly what is missing.
//!
//! `LOG_FILES_SEEDS=10000` makes it run for long; `LOG_FILES_SEED=7` runs one seed and prints what happens.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    follower::{Follower, Node},
    written_logs::WrittenLogs,
};
use crate::{
    DirectoryStore, FileCompression, LogFilesSettings, LossCause, LostBytes, OutputId, PositionStore,
    checkpoint::Checkpoint, disk_space::SpaceOnDisk,
};

/// How many seeds CI runs: a few seconds.
const DEFAULT_SEEDS: u64 = 100;

const PARALLEL_RUNS: usize = 16;

const OUTPUTS: [&str; 2] = ["a", "b"];

/// A state directory on a disk that is full at times.
struct FullDisk {
    store: DirectoryStore,
    is_full: Arc<AtomicBool>,
}

impl PositionStore for FullDisk {
    fn load(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.store.load()
    }

    fn save(&mut self, value: &[u8]) -> io::Result<()> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.store.save(value)
    }

    fn set_aside(&mut self) -> io::Result<PathBuf> {
        self.store.set_aside()
    }

    fn path(&self) -> &Path {
        self.store.path()
    }
}

/// What one run of the agent delivered.
#[derive(Default)]
struct Delivery {
    /// By output: the lines, once for each time.
    lines: BTreeMap<u8, BTreeMap<String, u32>>,
    bytes: BTreeMap<u8, u64>,
    /// By output: bytes that are exactly known, and whether there are others.
    lost: BTreeMap<u8, u64>,
    has_unknown_losses: bool,
}

struct Adversary {
    random: fastrand::Rng,
    node: Node,
    logs: WrittenLogs,
    follower: Option<Follower>,
    delivery: Delivery,
    is_full: Arc<AtomicBool>,
    was_killed: bool,
    may_kill: bool,
    /// Files that were read are closed, so that what is written and removed at once is not seen.
    has_few_files: bool,
    prints: bool,
}

impl Adversary {
    fn new(seed: u64, prints: bool) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let may_kill = random.bool();
        let has_few_files = random.u8(0..5) == 0;
        let node = Node::new();
        Self {
            logs: WrittenLogs::new(&node, random.fork()),
            random,
            node,
            follower: None,
            delivery: Delivery::default(),
            is_full: Arc::default(),
            was_killed: false,
            may_kill,
            has_few_files,
            prints,
        }
    }

    fn settings(&self) -> LogFilesSettings {
        let mut settings = self.node.settings(&["pods/*/*/*.log", "plain/*.log*"]);
        settings.compression = FileCompression::Auto;
        settings.rescan_interval = Duration::from_secs(3_600);
        if self.has_few_files {
            settings.limits.open_files = 3;
        }
        settings
    }

    fn start(&mut self) {
        let store = DirectoryStore::new(self.node.path("state"), "test");
        let store = FullDisk { store, is_full: self.is_full.clone() };
        let mut follower = self.node.open_outputs(self.settings(), &OUTPUTS, Some(Box::new(store)));
        follower.step(Duration::ZERO);
        self.follower = Some(follower);
        self.note_scan();
    }

    /// Ends the agent, by a kill or in an orderly way, and does things while it is away.
    fn restart(&mut self) {
        let Some(mut follower) = self.follower.take() else { return };
        follower.handle_rest();
        // Positions that cannot be stored are those of before, as if it was killed.
        let is_killed = self.may_kill && (self.random.bool() || self.is_full.load(Ordering::Relaxed));
        self.say(if is_killed { "kill" } else { "restart" });
        self.collect(&follower);
        self.logs.note_end();
        if is_killed {
            self.was_killed = true;
            drop(follower);
        } else {
            self.is_full.store(false, Ordering::Relaxed);
            follower.stop();
        }
        for _ in 0..self.random.usize(0..4) {
            self.disturb();
        }
        if self.random.u8(0..4) == 0 {
            self.reboot();
        }
        self.start();
    }

    /// After a reboot, file systems have other device numbers.
    fn reboot(&self) {
        let mut store = DirectoryStore::new(self.node.path("state"), "test");
        let Some(value) = store.load().unwrap() else { return };
        let mut checkpoint = Checkpoint::decode(&value).unwrap();
        checkpoint.boot_id = b"another boot".to_vec();
        for generation in checkpoint.streams.iter_mut().flat_map(|stream| &mut stream.generations) {
            generation.key.device += 1_000;
        }
        store.save(&checkpoint.encode()).unwrap();
        self.say("reboot");
    }

    fn disturb(&mut self) {
        let action = self.logs.disturb(&self.node);
        self.say(&action);
    }

    fn act(&mut self) {
        match self.random.u8(0..20) {
            0..=10 => self.disturb(),
            11..=15 => self.step(),
            16 | 17 => {
                let output = OutputId(self.random.u8(0..OUTPUTS.len() as u8));
                let answers = self.random.bool();
                self.say(&format!("output {} answers: {answers}", output.0));
                if let Some(follower) = &mut self.follower {
                    follower.set_answering(output, answers);
                }
            }
            18 => self.restart(),
            _ => {
                let is_full = self.may_kill && self.random.bool();
                self.is_full.store(is_full, Ordering::Relaxed);
                self.fill_disk();
            }
        }
    }

    fn step(&mut self) {
        self.say("step");
        let pause = Duration::from_millis(self.random.u64(0..8));
        if let Some(follower) = &mut self.follower {
            follower.step(pause);
        }
        self.note_scan();
    }

    /// The agent has seen everything, unless it waits before it lists a directory once more.
    fn note_scan(&mut self) {
        let has_scanned = self.follower.as_ref().is_some_and(|follower| !follower.files.waits_for_scan());
        if has_scanned && !self.has_few_files {
            self.logs.note_scan();
        }
    }

    /// Deleted files have to go.
    fn fill_disk(&mut self) {
        if self.random.u8(0..3) > 0 {
            return;
        }
        self.say("disk full");
        let roomy = SpaceOnDisk { total: 1 << 40, free: 1 << 40 };
        *self.node.disk.0.lock().unwrap() = SpaceOnDisk { total: 1 << 40, free: 1 };
        self.logs.note_end();
        std::thread::sleep(Duration::from_millis(6));
        self.step();
        *self.node.disk.0.lock().unwrap() = roomy;
        self.note_scan();
    }

    fn collect(&mut self, follower: &Follower) {
        for (output, lines) in &follower.delivered {
            let mut last: BTreeMap<_, (String, u64)> = BTreeMap::new();
            for (stream, _, line) in lines {
                *self.delivery.lines.entry(output.0).or_default().entry(line.clone()).or_default() += 1;
                let Some((log, number)) = parse_line(line) else { continue };
                // One stream is read in order.
                if let Some((previous_log, previous)) = last.insert(*stream, (log.clone(), number)) {
                    assert!(
                        previous_log != log || previous < number,
                        "output {} got {line} after {previous} from {stream:?}",
                        output.0
                    );
                }
            }
        }
        for (output, bytes) in &follower.bytes {
            *self.delivery.bytes.entry(output.0).or_default() += bytes;
        }
        for lost in &follower.lost {
            self.delivery.has_unknown_losses |= matches!(lost.bytes, LostBytes::AtLeast(_));
            assert_ne!(lost.cause, LossCause::Unreadable);
            for output in lost.outputs.iter() {
                *self.delivery.lost.entry(output.0).or_default() += lost.bytes.known();
            }
            self.say(&format!("lost {lost:?}"));
        }
    }

    /// Lets everything be delivered, and compares.
    fn finish(mut self) {
        self.is_full.store(false, Ordering::Relaxed);
        self.logs.complete_lines(&self.node);
        let mut follower = self.follower.take().unwrap();
        for output in 0..OUTPUTS.len() as u8 {
            follower.set_answering(OutputId(output), true);
        }
        let mut quiet = 0;
        let mut before = 0;
        follower.until("everything is read", |_| true);
        for _ in 0..3_000 {
            follower.step(Duration::from_millis(10));
            let bytes: u64 = follower.bytes.values().sum();
            let waits = follower.files.streams().any(|stream| {
                stream.generations.len() > 1 || (0..OUTPUTS.len()).any(|output| stream.committed[output] < stream.end())
            });
            let waits = waits || follower.files.waits_for_scan();
            quiet = if bytes == before && !waits { quiet + 1 } else { 0 };
            before = bytes;
            if quiet > 8 {
                break;
            }
        }
        assert!(quiet > 8, "not everything is read: {:#?}", follower.files.streams().collect::<Vec<_>>());
        follower.handle_rest();
        self.collect(&follower);
        self.compare();
    }

    fn compare(&self) {
        let may_lose = self.logs.lines_that_may_be_lost();
        let written = self.logs.written_lines();
        for output in 0..OUTPUTS.len() as u8 {
            let empty = BTreeMap::new();
            let lines = self.delivery.lines.get(&output).unwrap_or(&empty);
            for line in written.keys().filter(|line| !lines.contains_key(*line)) {
                let is_divided = self.delivery.has_unknown_losses && self.logs.divided_lines().contains(line);
                assert!(may_lose.contains(line) || is_divided, "output {output} did not get {line:?}");
            }
            if self.was_killed {
                continue;
            }
            for (line, times) in lines {
                assert!(*times == 1 || !written.contains_key(line), "output {output} got {line:?} {times} times");
            }
            let delivered = self.delivery.bytes.get(&output).copied().unwrap_or(0);
            let lost = self.delivery.lost.get(&output).copied().unwrap_or(0);
            let total: u64 = written.values().sum();
            assert!(delivered + lost <= total, "output {output}: {delivered} delivered, {lost} lost of {total}");
            if !self.delivery.has_unknown_losses && !self.logs.has_unseen_losses() {
                assert_eq!(delivered + lost, total, "output {output}: {delivered} delivered, {lost} lost");
            }
        }
    }

    fn say(&self, text: &str) {
        if self.prints {
            println!("{text}");
        }
    }
}

/// A line of a log: its log and number.
fn parse_line(line: &str) -> Option<(String, u64)> {
    let mut words = line.split(' ');
    let number = words.next()?.parse().ok()?;
    let log = words.next()?.to_owned();
    (words.next_back()? == "end").then_some((log, number))
}

fn run_seed(seed: u64, prints: bool) {
    let mut adversary = Adversary::new(seed, prints);
    adversary.start();
    for _ in 0..adversary.random.usize(10..60) {
        adversary.act();
    }
    adversary.finish();
}

#[test]
fn no_line_is_lost_that_was_readable_and_losses_are_exact() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    if let Some(seed) = number("LOG_FILES_SEED") {
        return run_seed(seed, true);
    }
    let seeds = number("LOG_FILES_SEEDS").unwrap_or(DEFAULT_SEEDS);
    let next = AtomicU64::new(0);
    let failed = Mutex::new(Vec::new());
    // Most of the time of a run is spent waiting.
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL_RUNS {
            scope.spawn(|| {
                while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < seeds) {
                    if let Err(cause) = std::panic::catch_unwind(|| run_seed(seed, false)) {
                        let text = cause.downcast_ref::<String>().cloned().unwrap_or_default();
                        failed.lock().unwrap().push((seed, text.chars().take(300).collect::<String>()));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} seeds failed: {failed:#?}", failed.len());
}
